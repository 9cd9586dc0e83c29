//! Profiles and the persona that change while the engine runs.

use navi_actors::domain::permissions::Memory;
use navi_actors::profiles::ProfileSet;
use navi_actors::protocol::chat::ChatMessage;
use navi_actors::protocol::command::NewSessionRequest;
use navi_actors::protocol::people::UserRole;
use navi_actors::protocol::phrase::Phrase;
use navi_actors::protocol::profile::Profile;

use crate::house::{House, Say, profile, with_house, write_call};

fn other(id: &str, prompt: &str) -> Profile {
    Profile {
        id: id.into(),
        name: id.to_uppercase(),
        system_prompt: prompt.into(),
        ..profile("plain")
    }
}

fn set(profiles: Vec<Profile>, persona: &str, warning: Option<&str>) -> ProfileSet {
    ProfileSet {
        profiles,
        persona: persona.into(),
        warnings: warning.map(Phrase::plain).into_iter().collect(),
    }
}

/// The system message of the last model call that answered a user.
fn system_message(house: &House) -> String {
    let requests = house.requests();
    match &*requests.last().unwrap().messages[0] {
        ChatMessage::System { content } => content.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_profile_and_a_persona_that_change_hold_at_the_next_message() {
    with_house(|house| async move {
        let session = house.session().await;
        let mut tab = house.tab(session, None).await;
        for (persona, prompt) in [("You are A.", "One."), ("You are B.", "Two.")] {
            let profiles = vec![other("plain", prompt)];
            house.engine.replace_profiles(set(profiles, persona, None));
            house.script([Say::Text("yes".into())]);
            house.say(session, "hi").await;
            tab.until("stream_end").await;
            let expected = format!("{persona}\n---\n{prompt}\n\nYou have at most");
            assert!(system_message(&house).starts_with(&expected));
        }
    });
}

#[test]
fn a_limit_that_changes_while_a_run_goes_holds_at_its_next_call() {
    with_house(|house| async move {
        let session = house.session().await;
        let mut tab = house.tab(session, None).await;
        house.script([Say::Hold, write_call("a.txt", "x")]);
        house.script([Say::Text("one is done".into())]);
        house.say(session, "go").await;
        house.requests_reach(1).await;
        let edited = Profile {
            max_iterations: 1,
            ..profile("plain")
        };
        house.engine.replace_profiles(set(vec![edited], "", None));
        house.release();
        let end = tab.until("stream_end").await.pop().unwrap();
        assert_eq!(end["completed"], false);
        assert!(house.asked()[1].tools.is_empty());
    });
}

#[test]
fn a_files_error_reaches_the_pages_and_goes_when_it_is_mended() {
    with_house(|house| async move {
        let mut page = house.page(house.user, UserRole::Admin);
        page.until("sessions").await;
        let profiles = || vec![profile("plain")];
        for warning in [Some("own.toml is refused"), None] {
            house.engine.replace_profiles(set(profiles(), "", warning));
            let expected: Vec<&str> = warning.into_iter().collect();
            loop {
                // A probe of the backends may tell the status too.
                let frame = page.until("status").await.pop().unwrap();
                if frame["status"]["warnings"] == serde_json::json!(expected) {
                    break;
                }
            }
            assert_eq!(house.engine.status().warnings, expected);
        }
    });
}

#[test]
fn a_session_whose_profile_is_deleted_goes_on_with_the_default_one() {
    with_house(|house| async move {
        let profiles = vec![profile("plain"), other("own", "Mine.")];
        house.engine.replace_profiles(set(profiles, "", None));
        let own = NewSessionRequest {
            profile_id: Some("own".into()),
            ..NewSessionRequest::default()
        };
        let created = house.engine.create_session(house.user, own);
        let session = created.await.unwrap().id;
        let mut tab = house.tab(session, None).await;
        house
            .engine
            .replace_profiles(set(vec![profile("plain")], "", None));
        house.script([Say::Text("yes".into())]);
        house.say(session, "hi").await;
        let frames = tab.until("stream_end").await;
        let notice = frames.iter().find(|frame| frame["type"] == "notice");
        let notice = notice.expect("the user is told");
        assert_eq!(notice["code"], "profile_missing");
        assert!(notice["message"].as_str().unwrap().contains("own"));
        assert!(system_message(&house).contains("Be brief."));
        let context = house
            .engine
            .context(house.user, session, Memory::Shown)
            .await
            .unwrap();
        assert_eq!(context.temperature, 0.0);
    });
}
