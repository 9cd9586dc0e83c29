//! What a person is shown who is asked about a call, and what an approval of it is bound to.
//! Nothing is changed by asking.

use super::changes::{fingerprint, fingerprint_of_content, measure};
use super::edit::plan;
use super::text::{proposed, text_of};
use super::write::{Before, Rewrite, destination, directory_of, kind, look};
use super::{Action, FilesystemArgs};
use crate::protocol::approval::{Detail, DetailKind};
use crate::tools::output::{human_size, visible};
use crate::tools::workspace::{OrFault as _, Reach, Spot};
use crate::tools::{Proposal, RuleSubject, ToolError};

pub(super) fn proposal(reach: &Reach, args: &FilesystemArgs) -> Result<Proposal, ToolError> {
    let path = args.path.as_str();
    match args.action {
        Action::List | Action::Read | Action::SearchNames | Action::SearchContent => {
            let (what, place) = match path {
                "" => ("the workspace", None),
                path => (path, reach.spot(path).ok()),
            };
            let place = place.as_ref().map(directory_of).unwrap_or_default();
            Ok(Proposal {
                summary: format!("look at `{}`", visible(what)),
                details: Vec::new(),
                rule: Some(rule("look", "looking at", &place)),
                binding: String::new(),
            })
        }
        Action::Write => {
            let spot = reach.spot(path)?;
            let content = args.content.clone().into_bytes();
            let rewrite = Rewrite::checked(&spot, look(&spot)?, content)?;
            let verb = match rewrite.before {
                Before::Absent => "create",
                _ => "replace all of",
            };
            Ok(of_content(&spot, verb, &rewrite))
        }
        Action::Edit => {
            let spot = reach.spot(path)?;
            Ok(of_content(&spot, "edit", &plan(&spot, args)?.0))
        }
        Action::Move => {
            let from = reach.spot(path)?;
            // Another thing that stands there is another call.
            let (at, _) = from.root.standing(&from.path)?;
            let binding = fingerprint(&at).or_fault(&from.path)?;
            let to = destination(reach, &from, &args.to)?;
            Ok(Proposal {
                summary: format!("move `{}` to `{}`", shown(&from), shown(&to)),
                details: vec![
                    Detail::text("from", full(&from)),
                    Detail::text("to", full(&to)),
                ],
                rule: Some(move_rule(&directory_of(&from), &directory_of(&to))),
                // Where it ends up hangs on what stands there, too.
                binding: format!("{binding} to {}", full(&to)),
            })
        }
        Action::Delete => {
            let spot = reach.spot(path)?;
            let (at, metadata) = spot.root.standing(&spot.path)?;
            let measured = measure(&at).or_fault(&spot.path)?;
            Ok(Proposal {
                summary: format!("delete `{}`", shown(&spot)),
                details: vec![
                    Detail::text("path", full(&spot)),
                    Detail::text("what goes", kind(metadata.is_dir(), measured)),
                ],
                rule: Some(rule("delete", "deleting files in", &directory_of(&spot))),
                binding: fingerprint(&at).or_fault(&spot.path)?,
            })
        }
    }
}

/// A file's new content.
fn of_content(spot: &Spot, verb: &str, rewrite: &Rewrite) -> Proposal {
    let before = &rewrite.before;
    let mut details = vec![Detail::text("path", full(spot))];
    let what_goes = match before {
        Before::Large(_) => Some("which cannot be put back"),
        Before::Content(bytes) if text_of(bytes).is_none() => Some("which is no text"),
        Before::Content(_) | Before::Absent => None,
    };
    details.extend(what_goes.map(|why| {
        let size = human_size(before.size());
        Detail::text("what goes", format!("{size}, {why}"))
    }));
    if !rewrite.is_same() {
        details.push(Detail {
            kind: DetailKind::Diff,
            ..Detail::text("changes", proposed(before.bytes(), &rewrite.after))
        });
    }
    Proposal {
        summary: format!("{verb} `{}`", shown(spot)),
        details,
        rule: Some(rule("change", "changes to files in", &directory_of(spot))),
        binding: match before {
            Before::Absent => "absent".to_owned(),
            Before::Content(bytes) => fingerprint_of_content(bytes),
            Before::Large(size) => format!("{size} bytes"),
        },
    }
}

/// Rules go by directory: "always" for one file would seldom be asked twice, and one for all
/// of them would be more than was asked about. In the workspace one rule covers all.
fn rule(kind: &str, words: &str, place: &str) -> RuleSubject {
    let key = if is_outside(place) {
        place
    } else {
        "workspace"
    };
    RuleSubject::new(format!("{kind}:{key}"), format!("{words} {}", named(place)))
}

/// A move takes from one place and puts into another: "always" for one of them is not for both.
fn move_rule(from: &str, to: &str) -> RuleSubject {
    if !is_outside(from) && !is_outside(to) {
        return rule("change", "changes to files in", to);
    }
    let (from, to) = (named(from), named(to));
    let words = format!("moving files from {from} to {to}");
    RuleSubject::new(format!("move:{from}:{to}"), words)
}

fn is_outside(place: &str) -> bool {
    place.starts_with('/')
}

fn named(place: &str) -> String {
    if is_outside(place) {
        format!("`{}`", visible(place))
    } else {
        "this conversation's folder".to_owned()
    }
}

fn shown(spot: &Spot) -> String {
    visible(&spot.path.to_string())
}

/// The path as a person finds it.
fn full(spot: &Spot) -> String {
    let shown = shown(spot);
    if spot.path.in_workspace() {
        format!("{shown} (in this conversation's folder)")
    } else {
        shown
    }
}
