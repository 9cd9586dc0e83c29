//! What small models do by habit: plans of one step, plans that they forget, promises instead of
//! calls, calls without an action.

use serde_json::{Value, json};

use crate::fake_model::{FakeModel, Recorded, Reply, Step};
use crate::server::{House, Server, Socket};

/// How the questions of planning begin.
const SORTS: &str = "You sort a user's request";
const PLANS: &str = "You write the plan";

fn talking() -> (FakeModel, Server) {
    let model = FakeModel::start();
    let server = House::new(&[("OLLAMA_HOST", &model.url())]).start();
    (model, server)
}

async fn tab(server: &Server) -> (String, Socket) {
    let session = server.new_session().await;
    let tab = server.tab(&session, None).await;
    (session, tab)
}

/// All that is told until the answer is there.
async fn answer(tab: &mut Socket, text: &str) -> Vec<Value> {
    tab.send(&json!({"type": "message", "content": text})).await;
    tab.until("stream_end").await
}

fn of<'a>(frames: &'a [Value], kind: &'a str) -> impl Iterator<Item = &'a Value> {
    frames.iter().filter(move |frame| frame["type"] == kind)
}

/// The model wants a plan, and writes this one.
fn plans(model: &FakeModel, plan: &str) {
    for (system, text) in [(SORTS, "Several files.\nREFLECT: no"), (PLANS, plan)] {
        let reply = Reply::new([Step::text(text)]).streamed(false);
        model.script(reply.system(system));
    }
}

fn write() -> Step {
    let arguments = json!({"action": "write", "path": "notes.md", "content": "x"});
    Step::tool_call("filesystem", arguments)
}

#[tokio::test]
async fn a_plan_of_one_step_is_none() {
    let (model, server) = talking();
    let (session, mut tab) = tab(&server).await;
    plans(&model, "1. Write it - TOOL: filesystem");
    model.script([write()]);
    let frames = answer(&mut tab, "write it down").await;
    assert_eq!(of(&frames, "plan_ready").count(), 0, "{frames:#?}");
    assert_eq!(of(&frames, "tool_call").count(), 1);
    let found = server.get(&format!("/sessions/{session}")).await;
    assert_eq!((&found["plan"], &found["todo"]), (&Value::Null, &json!([])));
    model.assert_clean();
}

#[tokio::test]
async fn the_steps_of_a_plan_are_ticked_for_a_model_that_forgets_them() {
    let (model, server) = talking();
    let (session, mut tab) = tab(&server).await;
    plans(
        &model,
        "1. Write it - TOOL: filesystem\n2. Read the other - TOOL: filesystem\n3. Say so - SELF",
    );
    let other = json!({"action": "read", "path": "other.md"});
    model.script([write(), Step::tool_call("filesystem", other)]);
    let frames = answer(&mut tab, "write it down and look").await;
    let list = &of(&frames, "todo_updated").last().unwrap()["items"];
    let marks = list.as_array().unwrap().iter();
    let marks: Vec<_> = marks.map(|item| &item["status"]).collect();
    assert_eq!(marks, ["done", "failed", "pending"], "{list}");
    let found = server.get(&format!("/sessions/{session}")).await;
    assert_eq!(found["todo"], *list);
    model.assert_clean();
}

#[tokio::test]
async fn a_sum_in_a_later_turn_is_not_planned() {
    let (model, server) = talking();
    let (_, mut tab) = tab(&server).await;
    let planned = || {
        let chats = model.chats().into_iter();
        let asks = |chat: &Recorded| chat.body["messages"].to_string().contains(SORTS);
        chats.filter(asks).count()
    };
    answer(&mut tab, "tell me of gardens").await;
    assert_eq!(planned(), 1);
    let frames = answer(&mut tab, "3+4?").await;
    assert_eq!(frames.last().unwrap()["content"], "You said: 3+4?");
    assert_eq!(planned(), 1);
    model.assert_clean();
}

#[tokio::test]
async fn a_file_that_is_only_promised_is_asked_for_and_told() {
    let (model, server) = talking();
    let warnings = |frames: &[Value]| {
        let notices = of(frames, "notice");
        notices
            .filter(|frame| frame["code"] == "unfinished_answer")
            .count()
    };
    for promise in [
        "I'll create the file notes.md with your list.",
        "I'll write it:\n```json\n{\"name\": \"filesystem\", \"arguments\": {\"action\": \"list\"}}\n```",
    ] {
        // It says so again when it is asked to do it: nothing was done, and that is told.
        let (_, mut tab) = tab(&server).await;
        for _ in 0..2 {
            model.script(Reply::new([Step::text(promise)]).with_tools(true));
        }
        let frames = answer(&mut tab, "write my list down").await;
        assert_eq!(warnings(&frames), 1, "{frames:#?}");
        // It does it.
        model.script(Reply::new([Step::text(promise)]).with_tools(true));
        model.script([write()]);
        let frames = answer(&mut tab, "and once more").await;
        assert_eq!(of(&frames, "tool_call").count(), 1, "{promise}");
        assert_eq!(warnings(&frames), 0, "{frames:#?}");
    }
    model.assert_clean();
}

#[tokio::test]
async fn a_call_without_its_action_is_the_only_one_that_it_can_be() {
    let model = FakeModel::start();
    let house = House::new(&[
        ("OLLAMA_HOST", &model.url()),
        ("HOME_ASSISTANT_URL", "http://127.0.0.1:9"),
        ("HOME_ASSISTANT_TOKEN", "token"),
    ]);
    std::fs::create_dir_all(house.data_dir()).unwrap();
    let hosts = json!({"box": {"host": "127.0.0.1", "port": 9, "user": "me", "key": "key"}});
    std::fs::write(house.data_dir().join("ssh_hosts.json"), hosts.to_string()).unwrap();
    let server = house.start();
    // Nobody can be asked in a plain run: what it would do there is understood, and denied.
    let denied = "nobody can be asked";
    for (tool, arguments, words) in [
        ("terminal", json!({"command": "echo hello"}), "hello"),
        (
            "filesystem",
            json!({"path": "a.txt", "content": "x"}),
            "created `a.txt`",
        ),
        ("todo", json!({"texts": ["one"]}), "one"),
        ("ssh", json!({"host": "box", "command": "ls"}), denied),
        ("home_assistant", json!({"service": "light.toggle"}), denied),
        // To read it, or to delete it.
        ("filesystem", json!({"path": "a.txt"}), "missing: `action`"),
    ] {
        let profile = match tool {
            "ssh" => "server_admin",
            "home_assistant" => "smart_home",
            _ => "secretary",
        };
        let body = json!({ "profile_id": profile });
        let session = server.post("/sessions", body).await["session_id"].clone();
        let path = format!("/sessions/{}", session.as_str().unwrap());
        model.script([Step::tool_call(tool, arguments)]);
        let said = json!({"content": "go on"});
        server.post(&format!("{path}/messages"), said).await;
        let found = server.get(&path).await;
        let result = found["messages"][2]["content"].as_str().unwrap();
        assert!(result.contains(words), "{tool}: {result}");
    }
    model.assert_clean();
}
