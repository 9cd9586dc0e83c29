//! Who may import whom, and where each library lives.

use crate::paths::{NamedPath, named_paths};

/// A room of the house.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layer {
    Protocol,
    Domain,
    Store,
    Llm,
    /// HTTP clients as all of them are made.
    Https,
    /// Other programs and threads, for work beside the actors.
    Programs,
    /// Documents and images as others send them, read.
    Documents,
    Tools,
    /// Every other module of `navi-actors`.
    Actors,
    Migrations,
    /// The package `navi`.
    Service,
    Eval,
    /// The crate that sets a variable of its process, before there is a second thread.
    Threads,
}

impl Layer {
    /// The layer of a file, by its path from the workspace's root.
    pub(crate) fn of(path: &str) -> Self {
        if path.starts_with("migrations/") {
            Self::Migrations
        } else if path.starts_with("threads/") {
            Self::Threads
        } else if path.starts_with("eval/") {
            Self::Eval
        } else if let Some(inside) = path.strip_prefix("actors/src/") {
            let module = inside.split('/').next().unwrap_or_default();
            Self::of_module(module.trim_end_matches(".rs"))
        } else {
            Self::Service
        }
    }

    /// The layer of a top module of `navi-actors`.
    fn of_module(module: &str) -> Self {
        match module {
            "protocol" => Self::Protocol,
            "domain" => Self::Domain,
            "store" => Self::Store,
            "llm" => Self::Llm,
            "https" => Self::Https,
            "programs" | "background" => Self::Programs,
            "documents" => Self::Documents,
            "tools" => Self::Tools,
            _ => Self::Actors,
        }
    }

    fn may_import(self, other: Self) -> bool {
        use Layer::{
            Actors, Documents, Domain, Eval, Https, Llm, Migrations, Programs, Protocol, Service,
            Store, Threads, Tools,
        };
        match self {
            Protocol => other == Protocol,
            Domain => matches!(other, Protocol | Domain),
            Store => matches!(other, Protocol | Domain | Store),
            Llm => matches!(other, Protocol | Domain | Https | Programs | Llm),
            Https => other == Https,
            Programs => other == Programs,
            Documents => matches!(other, Protocol | Domain | Programs | Documents),
            Tools => matches!(
                other,
                Protocol | Domain | Https | Programs | Documents | Tools
            ),
            Actors => !matches!(other, Migrations | Service | Eval | Threads),
            Migrations => other == Migrations,
            Threads => other == Threads,
            Service => other != Eval,
            Eval => true,
        }
    }
}

/// The layers that may name a library; `None` for libraries that anyone may.
fn rooms_of(library: &str) -> Option<&'static [Layer]> {
    use Layer::{Actors, Documents, Eval, Https, Llm, Migrations, Programs, Service, Store, Tools};
    match library {
        "sea_orm" | "sqlx" | "navi_migrations" => Some(&[Store]),
        "sea_orm_migration" => Some(&[Store, Migrations]),
        "actix" | "actix_rt" => Some(&[Actors, Service, Eval]),
        "actix_web" | "actix_http" | "actix_multipart" | "actix_web_actors" => Some(&[Service]),
        "agent_client_protocol" => Some(&[Service]),
        "calamine" | "image" | "pdf_extract" | "quick_xml" => Some(&[Documents]),
        "navi_threads" => Some(&[Service]),
        "openidconnect" => Some(&[Service]),
        "prometheus_client" => Some(&[Actors]),
        "opentelemetry" | "opentelemetry_sdk" => Some(&[Actors, Service]),
        "opentelemetry_http" | "opentelemetry_otlp" => Some(&[Service]),
        "reqwest" => Some(&[Https, Llm, Tools, Service]),
        "rustls_platform_verifier" => Some(&[Https]),
        "webauthn_rs" => Some(&[Service]),
        "tokio" => Some(&[
            Store, Llm, Programs, Documents, Tools, Actors, Service, Eval,
        ]),
        _ => None,
    }
}

/// What a file breaks, one line each.
pub(crate) fn violations(path: &str, source: &str) -> Vec<String> {
    let layer = Layer::of(path);
    named_paths(source)
        .iter()
        .filter_map(|named| {
            let wrong = broken_rule(layer, path, named)?;
            let what = named.segments.join("::");
            Some(format!("{path}:{}: `{what}` {wrong}", named.line))
        })
        .collect()
}

fn broken_rule(layer: Layer, path: &str, named: &NamedPath) -> Option<String> {
    if let Some(target) = target_layer(path, named) {
        return (!layer.may_import(target)).then(|| {
            format!("is an import against the arrow: {layer:?} must not know {target:?}")
        });
    }
    let library = named.segments.first()?;
    let rooms = rooms_of(library)?;
    (!rooms.contains(&layer)).then(|| format!("belongs to {rooms:?}, not to {layer:?}"))
}

/// The layer that a path of our own leads to; `None` for libraries and for names near by.
fn target_layer(path: &str, named: &NamedPath) -> Option<Layer> {
    let [first, rest @ ..] = named.segments.as_slice() else {
        return None;
    };
    match first.as_str() {
        "navi_actors" => Some(Layer::of_module(rest.first()?)),
        "navi" => Some(Layer::Service),
        "navi_eval" => Some(Layer::Eval),
        "crate" => path
            .starts_with("actors/src/")
            .then(|| rest.first())
            .flatten()
            .map(|module| Layer::of_module(module)),
        "super" => {
            let inside = path.strip_prefix("actors/src/")?;
            let ups = named.segments.iter().take_while(|s| *s == "super").count();
            let depth = module_depth(inside) + named.inline_depth;
            // Only a path that climbs to the crate's root can leave its layer.
            let next = named.segments.get(ups)?;
            (ups == depth).then(|| Layer::of_module(next))
        }
        _ => None,
    }
}

/// How deep the module of a file lies: 0 for `lib.rs`, 1 for `store/mod.rs` or `root.rs`.
fn module_depth(inside: &str) -> usize {
    let path = inside.trim_end_matches(".rs");
    let path = path.strip_suffix("/mod").unwrap_or(path);
    if path == "lib" {
        0
    } else {
        path.split('/').count()
    }
}
