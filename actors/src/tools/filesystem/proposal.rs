//! What a person is shown who is asked about a call, and what an approval of it is bound to.
//! Nothing is changed by asking.

use super::changes::{fingerprint, fingerprint_of_content, measure};
use super::edit::plan;
use super::text::{proposed, text_of};
use super::write::{Before, Rewrite, destination, directory_of, look};
use super::{Action, FilesystemArgs};
use crate::protocol::approval::{Detail, DetailKind};
use crate::protocol::phrase::{Label, Phrase, PhraseCode};
use crate::tools::output::{human_size, visible};
use crate::tools::workspace::{OrFault as _, Reach, Spot};
use crate::tools::{Proposal, RuleSubject, ToolResult};

pub(super) fn proposal(reach: &Reach, args: &FilesystemArgs) -> ToolResult<Proposal> {
    let path = args.path.as_str();
    match args.action {
        Action::List | Action::Read | Action::SearchNames | Action::SearchContent => {
            let (summary, place) = match path {
                "" => (PhraseCode::LookAtWorkspace.into(), None),
                path => {
                    let what = [("path", visible(path))];
                    (Phrase::new(PhraseCode::Look, what), reach.spot(path).ok())
                }
            };
            let place = place.as_ref().map(directory_of).unwrap_or_default();
            Ok(Proposal {
                summary,
                details: Vec::new(),
                rule: Some(rule("look", LOOKING, &place)),
                binding: String::new(),
            })
        }
        Action::Write => {
            let spot = reach.spot(path)?;
            let content = args.content.clone().into_bytes();
            let rewrite = Rewrite::checked(&spot, look(&spot)?, content)?;
            let verb = match rewrite.before {
                Before::Absent => PhraseCode::Create,
                _ => PhraseCode::Replace,
            };
            Ok(of_content(&spot, verb, &rewrite))
        }
        Action::Edit => {
            let spot = reach.spot(path)?;
            Ok(of_content(&spot, PhraseCode::Edit, &plan(&spot, args)?.0))
        }
        Action::Move => {
            let from = reach.spot(path)?;
            // Another thing that stands there is another call.
            let (at, _) = from.root.standing(&from.path)?;
            let binding = fingerprint(&at).or_fault(&from.path)?;
            let to = destination(reach, &from, &args.to)?;
            let places = [("from", shown(&from)), ("to", shown(&to))];
            Ok(Proposal {
                summary: Phrase::new(PhraseCode::Move, places),
                details: vec![full(Label::From, &from), full(Label::To, &to)],
                rule: Some(move_rule(&directory_of(&from), &directory_of(&to))),
                // Where it ends up hangs on what stands there, too.
                binding: format!("{binding} to {}", full(Label::To, &to).text),
            })
        }
        Action::Delete => {
            let spot = reach.spot(path)?;
            let (at, metadata) = spot.root.standing(&spot.path)?;
            let measured = measure(&at).or_fault(&spot.path)?;
            let size = human_size(measured.bytes);
            let goes = if metadata.is_dir() {
                let inside = measured.entries.saturating_sub(1).to_string();
                let params = [("n", inside), ("size", size)];
                Detail::words(Label::Goes, Phrase::new(PhraseCode::GoesDirectory, params))
            } else {
                Detail::text(Label::Goes, size)
            };
            Ok(Proposal {
                summary: Phrase::new(PhraseCode::Delete, [("path", shown(&spot))]),
                details: vec![full(Label::Path, &spot), goes],
                rule: Some(rule("delete", DELETING, &directory_of(&spot))),
                binding: fingerprint(&at).or_fault(&spot.path)?,
            })
        }
    }
}

/// A file's new content.
fn of_content(spot: &Spot, verb: PhraseCode, rewrite: &Rewrite) -> Proposal {
    let before = &rewrite.before;
    let mut details = vec![full(Label::Path, spot)];
    let what_goes = match before {
        Before::Large(_) => Some(PhraseCode::GoesLarge),
        Before::Content(bytes) if text_of(bytes).is_none() => Some(PhraseCode::GoesBinary),
        Before::Content(_) | Before::Absent => None,
    };
    details.extend(what_goes.map(|why| {
        let size = human_size(before.size());
        Detail::words(Label::Goes, Phrase::new(why, [("size", size)]))
    }));
    if !rewrite.is_same() {
        details.push(Detail {
            kind: DetailKind::Diff,
            ..Detail::text(Label::Changes, proposed(before.bytes(), &rewrite.after))
        });
    }
    Proposal {
        summary: Phrase::new(verb, [("path", shown(spot))]),
        details,
        rule: Some(rule("change", CHANGES, &directory_of(spot))),
        binding: match before {
            Before::Absent => "absent".to_owned(),
            Before::Content(bytes) => fingerprint_of_content(bytes),
            Before::Large(size) => format!("{size} bytes"),
        },
    }
}

/// What a rule covers in words: in the conversation's own folder, and elsewhere.
type Covers = [PhraseCode; 2];

const LOOKING: Covers = [PhraseCode::LookingHere, PhraseCode::LookingIn];
const CHANGES: Covers = [PhraseCode::ChangesHere, PhraseCode::ChangesIn];
const DELETING: Covers = [PhraseCode::DeletingHere, PhraseCode::DeletingIn];

/// Rules go by directory: "always" for one file would seldom be asked twice, and one for all
/// of them would be more than was asked about. In the workspace one rule covers all.
fn rule(kind: &str, [here, elsewhere]: Covers, place: &str) -> RuleSubject {
    if is_outside(place) {
        let words = Phrase::new(elsewhere, [("path", visible(place))]);
        RuleSubject::new(format!("{kind}:{place}"), words)
    } else {
        RuleSubject::new(format!("{kind}:workspace"), here)
    }
}

/// A move takes from one place and puts into another: "always" for one of them is not for both.
fn move_rule(from: &str, to: &str) -> RuleSubject {
    let words = match (is_outside(from), is_outside(to)) {
        (false, false) => return rule("change", CHANGES, to),
        (true, true) => Phrase::new(
            PhraseCode::MovingBetween,
            [("from", visible(from)), ("to", visible(to))],
        ),
        (true, false) => Phrase::new(PhraseCode::MovingIn, [("from", visible(from))]),
        (false, true) => Phrase::new(PhraseCode::MovingOut, [("to", visible(to))]),
    };
    RuleSubject::new(format!("move:{}:{}", named(from), named(to)), words)
}

fn is_outside(place: &str) -> bool {
    place.starts_with('/')
}

/// A place in the key of a rule, as rules that are stored have it.
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
fn full(label: Label, spot: &Spot) -> Detail {
    let shown = shown(spot);
    if spot.path.in_workspace() {
        Detail::words(label, Phrase::new(PhraseCode::Here, [("path", shown)]))
    } else {
        Detail::text(label, shown)
    }
}
