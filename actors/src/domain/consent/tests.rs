use chrono::TimeDelta;
use serde_json::json;

use super::*;

fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::seconds(seconds)
}

fn question(effect: Effect, mode: ConsentMode) -> Question<'static> {
    Question {
        tool: "terminal",
        effect,
        mode,
        by_word: None,
        consent: PlainConsent::Ask,
        tainted_at: None,
        rule: None,
    }
}

fn rule(decision: Permission, given: i64) -> Option<Rule> {
    Some(Rule {
        decision,
        given_here: Some(at(given)),
    })
}

fn asks(question: &Question<'_>) -> bool {
    matches!(decide(question), Verdict::Ask { .. })
}

#[test]
fn each_mode_asks_about_its_effects() {
    use ConsentMode::{Ask, Auto, Edits};
    use Effect::{Egress, Host, Read, Write};
    for (mode, asked) in [
        (Ask, vec![Write, Egress, Host]),
        (Edits, vec![Egress, Host]),
        (Auto, vec![]),
    ] {
        for effect in [Read, Write, Egress, Host] {
            assert_eq!(
                asks(&question(effect, mode)),
                asked.contains(&effect),
                "{mode:?} {effect:?}"
            );
        }
    }
}

#[test]
fn what_only_reads_and_the_sessions_own_state_are_never_asked_about() {
    for tool in OWN_STATE {
        let question = Question {
            tool,
            tainted_at: Some(at(1)),
            rule: rule(Permission::Deny, 2),
            ..question(Effect::Write, ConsentMode::Ask)
        };
        assert_eq!(decide(&question), Verdict::Free, "{tool}");
    }
    let saves = Question {
        tool: "memory_save",
        ..question(Effect::Write, ConsentMode::Ask)
    };
    assert!(asks(&saves));
}

#[test]
fn some_calls_take_the_users_word_in_every_mode() {
    let word = PhraseCode::DoesNotComeBack.into();
    for mode in [ConsentMode::Ask, ConsentMode::Edits, ConsentMode::Auto] {
        for tainted_at in [None, Some(at(1))] {
            let forgets = Question {
                by_word: Some(&word),
                tainted_at,
                ..question(Effect::Write, mode)
            };
            assert!(asks(&forgets), "{mode:?} {tainted_at:?}");
            let allowed = Question {
                consent: PlainConsent::Allow,
                ..forgets
            };
            let may = matches!(decide(&allowed), Verdict::Allow(PermittedBy::Mode));
            assert_eq!(may, tainted_at.is_none(), "{mode:?} {tainted_at:?}");
        }
    }
}

#[test]
fn after_text_from_outside_egress_and_host_ask_in_every_mode() {
    for effect in [Effect::Egress, Effect::Host] {
        let tainted = Question {
            tainted_at: Some(at(10)),
            ..question(effect, ConsentMode::Auto)
        };
        let Verdict::Ask { reason } = decide(&tainted) else {
            unreachable!()
        };
        assert_eq!(reason.last(), Some(&PhraseCode::ReadOutside.into()));
        // A rule from before the session read that text does not lift it, one from after does.
        let before = Question {
            rule: rule(Permission::Allow, 10),
            ..tainted
        };
        assert!(asks(&before));
        let after = Question {
            rule: rule(Permission::Allow, 11),
            ..tainted
        };
        assert_eq!(decide(&after), Verdict::Allow(PermittedBy::Rule));
        // Nor does one that was given in another session.
        let elsewhere = Question {
            rule: Some(Rule {
                decision: Permission::Allow,
                given_here: None,
            }),
            ..tainted
        };
        assert!(asks(&elsewhere));
        let plain = Question {
            tainted_at: None,
            ..elsewhere
        };
        assert_eq!(decide(&plain), Verdict::Allow(PermittedBy::Rule));
    }
    let writes = Question {
        tainted_at: Some(at(10)),
        ..question(Effect::Write, ConsentMode::Edits)
    };
    assert_eq!(decide(&writes), Verdict::Allow(PermittedBy::Mode));
}

#[test]
fn a_rule_takes_the_place_of_a_question_and_one_that_forbids_always_counts() {
    let allowed = Question {
        rule: rule(Permission::Allow, 1),
        ..question(Effect::Host, ConsentMode::Ask)
    };
    assert_eq!(decide(&allowed), Verdict::Allow(PermittedBy::Rule));
    for consent in [PlainConsent::Ask, PlainConsent::Deny, PlainConsent::Allow] {
        let forbidden = Question {
            rule: rule(Permission::Deny, 1),
            consent,
            ..question(Effect::Write, ConsentMode::Auto)
        };
        assert!(matches!(
            decide(&forbidden),
            Verdict::Deny {
                by: PermittedBy::Rule,
                ..
            }
        ));
    }
}

#[test]
fn with_nobody_to_ask_it_is_denied_unless_the_request_says_otherwise() {
    let plain = Question {
        consent: PlainConsent::Deny,
        ..question(Effect::Egress, ConsentMode::Edits)
    };
    assert!(matches!(
        decide(&plain),
        Verdict::Deny {
            by: PermittedBy::Mode,
            ..
        }
    ));
    let allows = Question {
        consent: PlainConsent::Allow,
        ..plain
    };
    assert_eq!(decide(&allows), Verdict::Allow(PermittedBy::Mode));
    // Text from outside may have led to it, and there is nobody to see that.
    let tainted = Question {
        tainted_at: Some(at(1)),
        ..allows
    };
    assert!(matches!(decide(&tainted), Verdict::Deny { .. }));
}

#[test]
fn a_child_may_do_no_more_than_its_parent() {
    let parent = ceiling(
        [
            ("filesystem", Effect::Write),
            ("spawn_agent", Effect::Host),
            ("web_search", Effect::Read),
        ],
        Effect::Host,
    );
    assert_eq!(parent, Effect::Write);
    assert!(beyond_parent("filesystem", Effect::Write, parent).is_none());
    assert!(beyond_parent("terminal", Effect::Host, parent).is_some());
    assert!(beyond_parent("todo", Effect::Write, Effect::Read).is_none());
    // A grandchild's is bounded by its grandparent's too.
    let child = ceiling([("terminal", Effect::Host)], parent);
    assert_eq!(child, Effect::Write);
}

#[test]
fn an_approval_is_bound_to_everything_that_makes_the_call() {
    let args = json!({"command": "ls"});
    let bound = digest("terminal", &args, "dir=/a");
    assert_eq!(bound, digest("terminal", &args, "dir=/a"));
    for other in [
        digest("terminal", &args, "dir=/b"),
        digest("terminal", &json!({"command": "ls "}), "dir=/a"),
        digest("ssh", &args, "dir=/a"),
        // Moving the border between two parts makes another text.
        digest("terminal", &args, "dir=/a\0"),
    ] {
        assert_ne!(bound, other);
    }
    assert_ne!(rule_key("ab", "c"), rule_key("a", "bc"));
}
