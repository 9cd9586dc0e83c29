//! Requests, rules and the list of what was allowed, on both databases.

use chrono::{DateTime, Utc};

use super::StoreError;
use super::testing::{TestDb, Writer, at, on_both, run};
use crate::domain::consent::Asking;
use crate::domain::session::write::{ConsentRow, NewRule, Write};
use crate::protocol::approval::{
    ApprovalRequest, ConsentEntry, ConsentMode, ConsentRule, DecidedBy, Detail, DetailKind,
    EntryPhrases, PendingApproval, Permission, PermittedBy, Resolution,
};
use crate::protocol::command::Decision;
use crate::protocol::ids::{ApprovalId, CallId, RuleId, RunId, SessionId, UserId};
use crate::protocol::phrase::{Label, Phrase, PhraseCode};
use crate::protocol::session::RunState;
use crate::protocol::tool::Effect;

on_both!(
    a_request_waits_until_its_first_answer,
    a_run_that_waits_is_loaded_with_its_loop,
    always_is_known_to_the_session_that_it_was_given_in,
    a_rule_is_one_for_its_calls_and_its_users_own,
    the_list_is_read_by_pages_and_shortened,
    mode_and_taint_are_the_sessions,
);

fn asking(run_id: RunId) -> Asking {
    Asking {
        pending: PendingApproval {
            approval_id: ApprovalId::new(),
            run_id,
            call_id: CallId::new(),
            tool: "terminal".to_owned(),
            request: ApprovalRequest {
                summary: "run `ls`".to_owned(),
                effect: Effect::Host,
                reason: "it is asked".to_owned(),
                details: vec![Detail {
                    label: "command".to_owned(),
                    code: Some(Label::Command),
                    kind: DetailKind::Code,
                    text: "ls\0 --all".to_owned(),
                    phrase: None,
                }],
                always: None,
                phrases: None,
            },
            requested_at: at(1),
            expires_at: at(2),
            is_subagent: false,
        },
        digest: "abc".to_owned(),
        rule_key: Some("key".to_owned()),
    }
}

fn resolved(asking: &Asking, by: DecidedBy) -> Write {
    Write::ApprovalResolved {
        approval_id: asking.pending.approval_id,
        resolution: Resolution {
            decision: Decision::Deny,
            by,
        },
        at: at(3),
    }
}

fn rule(user_id: UserId, key: &str, decision: Permission, created_at: DateTime<Utc>) -> Write {
    Write::ConsentRule(NewRule {
        user_id,
        key: key.to_owned(),
        rule: ConsentRule {
            id: RuleId::new(),
            tool: "terminal".to_owned(),
            words: format!("`{key}`"),
            phrase: Some(Phrase::new(
                PhraseCode::CommandExactly,
                [("command", key.to_owned())],
            )),
            decision,
            created_at,
        },
    })
}

fn line(user_id: UserId, session_id: SessionId, seconds: i64) -> Write {
    Write::Consented(ConsentRow {
        user_id,
        entry: ConsentEntry {
            id: 0,
            at: at(seconds),
            session_id,
            run_id: RunId::new(),
            call_id: CallId::new(),
            tool: "terminal".to_owned(),
            effect: Effect::Host,
            summary: format!("call {seconds}"),
            decision: Permission::Allow,
            by: PermittedBy::Rule,
            rule: Some("`ls`".to_owned()),
            phrases: Some(EntryPhrases {
                summary: Phrase::new(PhraseCode::Call, [("tool", seconds.to_string())]),
                rule: Some(Phrase::plain("`ls`")),
            }),
            note: None,
            author: None,
        },
    })
}

async fn a_request_waits_until_its_first_answer(db: TestDb) {
    let store = db.open().await;
    let writer = Writer::new(&store).await;
    let asking = asking(RunId::new());
    let id = asking.pending.approval_id;
    let request = vec![Write::ApprovalRequested(asking.clone())];
    writer.write(request).await.unwrap();
    assert_eq!(writer.load().await.approvals, std::slice::from_ref(&asking));
    let known = store.approval_resolution(writer.id, id).await.unwrap();
    assert_eq!(known, Some(None));

    let first = writer.write(vec![resolved(&asking, DecidedBy::User)]).await;
    assert_eq!(first, Ok(()));
    let second = writer.write(vec![resolved(&asking, DecidedBy::Stop)]).await;
    assert!(matches!(second, Err(StoreError::Corrupt(_))), "{second:?}");
    assert!(writer.load().await.approvals.is_empty());
    let known = store.approval_resolution(writer.id, id).await.unwrap();
    assert_eq!(known.flatten().unwrap().by, DecidedBy::User);
    // Another session does not know it.
    let other = Writer::new(&store).await;
    let known = store.approval_resolution(other.id, id).await.unwrap();
    assert_eq!(known, None);
}

async fn a_run_that_waits_is_loaded_with_its_loop(db: TestDb) {
    let store = db.open().await;
    let writer = Writer::new(&store).await;
    let run = run();
    let asking = asking(run.run_id);
    let Write::Event(mut event) = writer.event() else {
        unreachable!("a writer's event is one")
    };
    event.run_id = Some(run.run_id);
    let writes = vec![
        Write::Event(event),
        Write::RunStarted(run.clone()),
        Write::ApprovalRequested(asking.clone()),
        Write::RunLoop {
            run_id: run.run_id,
            json: "{}".to_owned(),
        },
    ];
    writer.write(writes).await.unwrap();
    let loaded = writer.load().await;
    assert_eq!(loaded.run_first_seq, Some(1));
    assert_eq!(loaded.last_run.unwrap().loop_state.as_deref(), Some("{}"));
    let ends = vec![
        resolved(&asking, DecidedBy::Stop),
        super::testing::ended(&run, RunState::Stopped),
    ];
    writer.write(ends).await.unwrap();
    assert_eq!(writer.load().await.last_run.unwrap().loop_state, None);
}

async fn answered(writer: &Writer, decision: Decision, seconds: i64) {
    let asking = asking(RunId::new());
    let answer = Write::ApprovalResolved {
        approval_id: asking.pending.approval_id,
        resolution: Resolution {
            decision,
            by: DecidedBy::User,
        },
        at: at(seconds),
    };
    let request = vec![Write::ApprovalRequested(asking)];
    writer.write(request).await.unwrap();
    writer.write(vec![answer]).await.unwrap();
}

async fn always_is_known_to_the_session_that_it_was_given_in(db: TestDb) {
    let store = db.open().await;
    let writer = Writer::new(&store).await;
    let given = |session: SessionId, key: &'static str| {
        let store = store.clone();
        async move { store.always_given(session, "terminal", key).await.unwrap() }
    };
    answered(&writer, Decision::Once, 3).await;
    assert_eq!(given(writer.id, "key").await, None);
    answered(&writer, Decision::Always, 4).await;
    answered(&writer, Decision::Always, 6).await;
    answered(&writer, Decision::Once, 8).await;
    assert_eq!(given(writer.id, "key").await, Some(at(6)));
    assert_eq!(given(writer.id, "other").await, None);
    let other = Writer::new(&store).await;
    assert_eq!(given(other.id, "key").await, None);
}

async fn a_rule_is_one_for_its_calls_and_its_users_own(db: TestDb) {
    let store = db.open().await;
    let writer = Writer::new(&store).await;
    let user = store.local_user().await.unwrap().id;
    let writes = vec![
        rule(user, "ls", Permission::Allow, at(1)),
        rule(user, "ls", Permission::Deny, at(2)),
        // One that forbids stands until it is taken back.
        rule(user, "ls", Permission::Allow, at(4)),
        rule(user, "cat", Permission::Allow, at(3)),
    ];
    writer.write(writes).await.unwrap();
    let rules = store.consent_rules(user).await.unwrap();
    let words: Vec<_> = rules.iter().map(|rule| rule.words.as_str()).collect();
    assert_eq!(words, ["`cat`", "`ls`"]);
    assert_eq!(store.count_consent_rules(user).await, Ok(2));
    let found = store.consent_rule(user, "terminal", "ls").await.unwrap();
    let found = found.unwrap();
    assert_eq!(
        (found.decision, found.created_at),
        (Permission::Deny, at(2))
    );
    assert_eq!(
        found.phrase.map(|it| it.to_string()),
        Some(found.words.clone() + ", word for word")
    );
    for (user, tool, key) in [
        (user, "terminal", "l"),
        (user, "ssh", "ls"),
        (UserId::new(), "terminal", "ls"),
    ] {
        let found = store.consent_rule(user, tool, key).await.unwrap();
        assert_eq!(found, None);
    }
    assert_eq!(
        store.delete_consent_rule(UserId::new(), found.id).await,
        Ok(false)
    );
    assert_eq!(store.delete_consent_rule(user, found.id).await, Ok(true));
    assert_eq!(store.delete_consent_rule(user, found.id).await, Ok(false));
}

async fn the_list_is_read_by_pages_and_shortened(db: TestDb) {
    let store = db.open().await;
    let writer = Writer::new(&store).await;
    let user = store.local_user().await.unwrap().id;
    let lines = (1..=5).map(|n| line(user, writer.id, n)).collect();
    writer.write(lines).await.unwrap();
    let summaries = |entries: &[ConsentEntry]| -> Vec<String> {
        entries.iter().map(|entry| entry.summary.clone()).collect()
    };
    let page = store.consent_log(user, None, 2).await.unwrap();
    assert_eq!(summaries(&page), ["call 5", "call 4"]);
    let phrases = page[0].phrases.clone().unwrap();
    assert_eq!(phrases.summary.to_string(), "call 5");
    assert_eq!(phrases.rule, Some(Phrase::plain("`ls`")));
    let page = store.consent_log(user, Some(page[1].id), 9).await.unwrap();
    assert_eq!(summaries(&page), ["call 3", "call 2", "call 1"]);
    let others = store.consent_log(UserId::new(), None, 9).await.unwrap();
    assert!(others.is_empty());
    store.purge_consent_log(at(4)).await.unwrap();
    let left = store.consent_log(user, None, 9).await.unwrap();
    assert_eq!(summaries(&left), ["call 5", "call 4"]);
}

async fn mode_and_taint_are_the_sessions(db: TestDb) {
    let store = db.open().await;
    let writer = Writer::new(&store).await;
    let loaded = writer.load().await;
    assert_eq!(
        (loaded.mode, loaded.tainted_at),
        (Some(ConsentMode::Edits), None)
    );
    let writes = vec![Write::Mode(ConsentMode::Auto), Write::Tainted(at(7))];
    writer.write(writes).await.unwrap();
    let loaded = writer.load().await;
    assert_eq!(
        (loaded.mode, loaded.tainted_at),
        (Some(ConsentMode::Auto), Some(at(7)))
    );
}
