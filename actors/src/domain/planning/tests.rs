//! Scripted replies against SPEC section 4.
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::domain::talk::{NOW, call};
use crate::domain::todo::{MAX_TEXT_CHARS, of_plan};
use crate::protocol::plan::Executor;
use crate::protocol::tool::Effect;

fn tools() -> Vec<ToolSpec> {
    [
        (
            "filesystem",
            "Files of this conversation. Paths are relative.",
        ),
        ("web_search", "Searches the web."),
    ]
    .map(|(name, description)| ToolSpec {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters: json!({}),
        effect: Effect::Read,
        time_limit_ms: 1,
    })
    .to_vec()
}

const AGENTS: [AgentInfo<'static>; 1] = [AgentInfo {
    id: "server_admin",
    name: "Server Administrator",
    description: "remote operations, monitoring",
}];

fn with_task<T>(then: impl FnOnce(&Task<'_>) -> T) -> T {
    let tools = tools();
    let recent = [
        (Role::User, "Hello".to_owned()),
        (Role::Assistant, "Good morning!\nWhat can I do?".to_owned()),
    ];
    then(&Task {
        request: "Read my two reports and write a summary.",
        recent: &recent,
        tools: &tools,
        agents: &AGENTS,
    })
}

fn reply(planner: Planner, reply: &str, phase2: bool) -> Planned {
    let flags = ProfileFlags {
        planning_phase2_enabled: phase2,
        ..ProfileFlags::default()
    };
    with_task(|task| planner.on_reply(whole(reply), &flags, task))
}

fn whole(text: &str) -> PlanningReply<'_> {
    PlanningReply {
        text,
        finish: FinishReason::Stop,
    }
}

fn write(analysis: &str, review: Option<&str>) -> Planner {
    Planner::Write {
        analysis: analysis.to_owned(),
        review: review.map(str::to_owned),
    }
}

fn plan(text: &str) -> PlannedSteps {
    match reply(write("", None), text, false) {
        Planned::Plan(steps) => steps,
        other => panic!("{other:?} from {text}"),
    }
}

/// Steps as `number executor text`, of a plan that goes on by another step after them.
fn steps(text: &str) -> Vec<String> {
    let steps = plan(&format!("{text}\n99. Say so | SELF")).steps;
    let (_, steps) = steps.split_last().unwrap();
    steps
        .iter()
        .map(|step| {
            let who = match &step.executor {
                Executor::Tool { tool } => tool,
                Executor::Agent { profile_id } => profile_id,
                Executor::Itself => "-",
            };
            format!("{} {who} {}", step.number, step.text)
        })
        .collect()
}

#[test]
fn phase_1_a_reply_that_starts_with_direct_ends_planning() {
    for text in [
        "DIRECT",
        "  \n**DIRECT**\n",
        "`direct`",
        "\"Direct.\"",
        "Direct: a greeting",
        "DIRECT - a greeting",
        "DIRECT This is a simple question.",
        "```\nDIRECT\n```",
        "<think>it is simple</think>\n\nDIRECT",
        "that is simple.\n</think>\nDIRECT",
    ] {
        assert_eq!(reply(Planner::new(), text, true), Planned::Direct, "{text}");
    }
    for text in [
        "Directly after that the user wants a report.",
        "DIRECTORIES have to be listed.",
        "Direct access to the server is needed.",
        "Direct-mail figures are wanted.",
        "The user wants this: DIRECT",
    ] {
        assert_eq!(
            reply(Planner::new(), text, false),
            Planned::Ask(write(text, None)),
        );
    }
}

#[test]
fn phase_1_reflect_yes_leads_to_a_review_only_where_phase_2_is_enabled() {
    let analysis = "Two reports are compared.\nREFLECT: yes";
    let review = Planner::Review {
        analysis: "Two reports are compared.".to_owned(),
    };
    let no_review = write("Two reports are compared.", None);
    assert_eq!(
        reply(Planner::new(), analysis, true),
        Planned::Ask(review.clone())
    );
    assert_eq!(
        reply(Planner::new(), analysis, false),
        Planned::Ask(no_review.clone())
    );
    for yes in [
        "**REFLECT: YES**",
        "reflect : yes.",
        "REFLECT: **yes**",
        "- REFLECT: [yes]",
    ] {
        let text = format!("Two reports are compared. {yes}");
        assert_eq!(
            reply(Planner::new(), &text, true),
            Planned::Ask(review.clone()),
            "{text}"
        );
    }
    for no in [
        "\nREFLECT: no",
        "\nREFLECT:",
        "\nREFLECT: yes\nREFLECT: no",
        "",
    ] {
        let text = format!("Two reports are compared.{no}");
        assert_eq!(
            reply(Planner::new(), &text, true),
            Planned::Ask(no_review.clone()),
            "{text}"
        );
    }
}

#[test]
fn phase_2_the_review_goes_into_phase_3() {
    let review = Planner::Review {
        analysis: "a".to_owned(),
    };
    let said = "RISKS: none\nMISSING: names\nASSUMPTIONS: none\nSIMPLER: ask";
    let next = reply(review.clone(), said, true);
    assert_eq!(next, Planned::Ask(write("a", Some(said))));
    let Planned::Ask(next) = next else { panic!() };
    let messages = with_task(|task| next.messages(task));
    let Some(ChatMessage::User { content, .. }) = messages.last() else {
        panic!()
    };
    assert!(content.ends_with(&format!("Analysis:\na\n\nReview:\n{said}")));
    // No review is worse than one, but better than no plan.
    assert_eq!(
        reply(review, "<think>hm", true),
        Planned::Ask(write("a", None))
    );
}

#[test]
fn phase_3_milestones_and_numbered_steps_with_their_executors() {
    let text = "\
MILESTONE: Gather
1. Find the first report | TOOL: filesystem
2. Check the server's disks | AGENT: server_admin

MILESTONE: Write
3. Write the summary | SELF";
    let planned = plan(text);
    assert_eq!(planned.text, text);
    insta::assert_json_snapshot!(planned.steps);
}

#[test]
fn phase_3_a_reply_without_numbered_steps_is_no_plan() {
    for text in [
        "",
        "  \n ",
        "I would read the reports first.",
        "- read the reports\n- write",
        "Step 1: read",
        "In 2. place comes the summary",
        "1.\n2)",
        "1. TOOL: filesystem",
        "1. Milestone: read",
        "<think>1. read",
        "12 reports",
    ] {
        assert_eq!(
            reply(write("", None), text, false),
            Planned::NoPlan,
            "{text}"
        );
    }
    assert_eq!(reply(Planner::new(), " \n", false), Planned::NoPlan);
}

#[test]
fn phase_3_a_plan_of_one_step_is_no_plan() {
    for text in [
        "1. Answer the question | SELF",
        "MILESTONE: Answer\n1. Add 3 and 4 | TOOL: terminal",
        "1. Answer\n2. TOOL: filesystem",
    ] {
        assert_eq!(
            reply(write("", None), text, false),
            Planned::NoPlan,
            "{text}"
        );
    }
}

#[test]
fn a_question_of_planning_that_ran_into_its_limit_ends_it() {
    let numbers: String = (1..=300).map(|n| format!("{n}. {n}\n")).collect();
    for planner in [
        Planner::new(),
        Planner::Review {
            analysis: "a".to_owned(),
        },
        write("a", None),
    ] {
        assert!(planner.max_output_tokens(1_200) <= 1_200);
        let cut = PlanningReply {
            text: &numbers,
            finish: FinishReason::Length,
        };
        let planned = with_task(|task| planner.on_reply(cut, &ProfileFlags::default(), task));
        assert_eq!(planned, Planned::NoPlan);
    }
    assert!(Planner::new().max_output_tokens(1_200) <= 300);
}

#[test]
fn what_can_only_be_simple_is_direct_without_a_model() {
    for text in [
        "3+4?",
        "3 + 4 = ?",
        "17*23",
        "what is (12.5 - 3) / 2?",
        "and 5 * 5?",
        "Скільки буде 7×8?",
        "Сколько будет 100 - 1",
        "Hi!",
        "Hello, Navi 🙂",
        "good morning there",
        "Thanks! Good night",
        "ok, thank you very much",
        "Yes, please.",
        "No",
        "Привіт, Наві!",
        "Щиро дякую, на добраніч",
        "так",
        "Ні, дякую",
        "Здравствуйте!",
        "Да, спасибо",
        "нет",
    ] {
        assert!(is_direct(text), "{text}");
    }
    for text in [
        "",
        "?",
        "7",
        "Navi",
        "please",
        "there",
        "2026-11-23",
        "+380 44 123 45 67",
        "1.5.2",
        "yes, and write three reports",
        "no, delete both files instead",
        "hello.txt and bye.txt: compare them",
        "write 3+4 into a file",
        "Thanks, now compare my two reports",
        "Дякую, тепер порівняй звіти",
        "так само зроби з іншими",
        "3+4 and then search the web for the result",
        "hi hi hi hi hi hi hi hi hi hi hi hi hi hi hi hi hi hi hi hi hi hi hi hi hi hi hi hi hi",
    ] {
        assert!(!is_direct(text), "{text}");
    }
}

#[test]
fn phase_3_a_step_that_names_an_unknown_tool_or_profile_becomes_self() {
    let planned = plan(
        "1. Bake | TOOL: oven\n2) Ask round (AGENT: nobody)\n  3. Read | TOOL: filesystem\n4. Think\n5. Stir\n   TOOL: spoon",
    );
    assert_eq!(
        planned.text,
        "1. Bake | SELF\n2. Ask round | SELF\n  3. Read | TOOL: filesystem\n4. Think\n5. Stir"
    );
    let executors: Vec<_> = planned.steps.into_iter().map(|s| s.executor).collect();
    let mut expected = vec![Executor::Itself; 5];
    expected[2] = Executor::Tool {
        tool: "filesystem".to_owned(),
    };
    assert_eq!(executors, expected);
}

#[test]
fn phase_3_executors_are_read_as_models_write_them() {
    for line in [
        "Read it TOOL: filesystem",
        "Read it (TOOL: filesystem)",
        "Read it [TOOL: `filesystem`]",
        "Read it - **TOOL:** filesystem",
        "Read it → tool: filesystem()",
        "TOOL: filesystem - Read it",
        "[TOOL: filesystem] Read it",
        "**TOOL: filesystem**: Read it",
        "Read it | Executor: TOOL: filesystem",
        "Read it (executor: TOOL:filesystem)",
        "**Read it** — TOOL: <filesystem>",
        "Read it `TOOL: filesystem`",
        "Read it | Tool: Filesystem",
        "Read it | TOOL: filesystem | SELF",
        "[ ] Read it | TOOL: filesystem",
        "Read it\n   - TOOL: filesystem",
        "Read it\n   **Executor:** TOOL: filesystem",
    ] {
        assert_eq!(
            steps(&format!("1. {line}")),
            ["1 filesystem Read it"],
            "{line}"
        );
    }
    for line in [
        "Check it | AGENT: server_admin",
        "Check it (AGENT: Server Administrator)",
        "AGENT: server_admin: Check it",
    ] {
        assert_eq!(
            steps(&format!("1. {line}")),
            ["1 server_admin Check it"],
            "{line}"
        );
    }
    for line in [
        "Write it | SELF",
        "Write it (self)",
        "Write it SELF",
        "SELF: Write it",
        "Write it — Self",
        "Write it | Executor: SELF",
        "Write it",
    ] {
        assert_eq!(steps(&format!("1. {line}")), ["1 - Write it"], "{line}");
    }
}

#[test]
fn phase_3_words_that_only_look_like_executors_stay() {
    for text in [
        "Write about the self",
        "Set up a self-signed certificate",
        "Call the estate agent: she knows the price",
        "Choose a tool: saw or axe",
        "Read the .env file: name=value - all of it",
        "Use SELF-service to pay",
    ] {
        assert_eq!(steps(&format!("1. {text}")), [format!("1 - {text}")]);
    }
    assert_eq!(
        steps("1. Read the .env file (TOOL: filesystem)."),
        ["1 filesystem Read the .env file."]
    );
}

#[test]
fn phase_3_numbers_are_ours() {
    let planned = plan(
        "Here is the plan:\n## Plan\n## Gather\n1. a\n3) b\n   3.1 c\n**Milestone 2: Write**\n1. d\n2.1. e\n1. Milestone 3 - Send\n1.f",
    );
    let seen: Vec<_> = planned
        .steps
        .iter()
        .map(|s| (s.number, s.text.as_str(), s.milestone.as_deref()))
        .collect();
    assert_eq!(
        seen,
        [
            (1, "a", Some("Gather")),
            (2, "b", Some("Gather")),
            (3, "c", Some("Gather")),
            (4, "d", Some("Write")),
            (5, "e", Some("Write")),
            (6, "f", Some("Send")),
        ]
    );
    assert_eq!(
        planned.text,
        "Here is the plan:\n## Plan\n## Gather\n1. a\n2) b\n   3. c\n**Milestone 2: Write**\n4. d\n5. e\nMilestone 3 - Send\n6. f"
    );
}

#[test]
fn phase_3_a_plan_ends_after_thirty_steps() {
    let text: String = (1..=40).map(|n| format!("{n}. step {n}\n")).collect();
    let planned = plan(&text);
    assert_eq!(planned.steps.len(), MAX_STEPS);
    assert!(planned.text.ends_with("\n30. step 30"));

    let long = plan(&format!("1. {}\n2. end", "слово ".repeat(500)));
    assert_eq!(long.steps[0].text.chars().count(), MAX_TEXT_CHARS);
}

#[test]
fn phase_3_reasoning_and_fences_are_no_part_of_the_plan() {
    let planned =
        plan("<think>1. wrong\n</think>\n```markdown\n1. right\n2. end\n```\n<think>more");
    assert_eq!(planned.text, "1. right\n2. end");
    assert_eq!(
        plan("1. wrong</think>1. right\n2. end").text,
        "1. right\n2. end"
    );
}

#[test]
fn the_prompts_are_short_and_name_what_there_is() {
    let phases = [
        Planner::Analyse,
        Planner::Review {
            analysis: "Two reports.".to_owned(),
        },
        write("Two reports.", Some("RISKS: none")),
    ];
    let sent: Vec<_> = phases
        .iter()
        .map(|phase| with_task(|task| phase.messages(task)))
        .map(|messages| {
            let said = messages.iter().map(|message| match message {
                ChatMessage::System { content } => {
                    assert!(content.split_whitespace().count() < 280, "{content}");
                    format!("SYSTEM {content}")
                }
                ChatMessage::User { content, .. } => format!("USER {content}"),
                ChatMessage::Assistant { content, .. } => format!("ASSISTANT {content}"),
                other => panic!("{other:?}"),
            });
            said.collect::<Vec<_>>().join("\n<<<\n")
        })
        .collect();
    insta::assert_snapshot!(sent.join("\n\n=====\n\n"));
}

#[test]
fn the_prompts_offer_no_executor_that_there_is_not() {
    let task = Task {
        request: "x",
        recent: &[],
        tools: &[],
        agents: &[],
    };
    let messages = write("", None).messages(&task);
    let ChatMessage::System { content } = &messages[0] else {
        panic!()
    };
    assert!(
        !content.contains("TOOL:") && !content.contains("AGENT:"),
        "{content}"
    );
    assert!(matches!(
        &messages[2],
        ChatMessage::Assistant { content, .. } if content.contains("4. Write the summary | SELF")
    ));
    assert_eq!(
        *messages.last().unwrap(),
        ChatMessage::User {
            content: "Request: x".to_owned(),
            images: Vec::new()
        }
    );
}

#[test]
fn the_prompts_are_bounded() {
    let mut tools = tools();
    tools.resize(500, tools[0].clone());
    for tool in &mut tools {
        tool.description = "long words ".repeat(100);
    }
    let recent = vec![(Role::User, "long ".repeat(1_000)); 50];
    let task = Task {
        request: &"long ".repeat(100_000),
        recent: &recent,
        tools: &tools,
        agents: &AGENTS,
    };
    let huge = "x".repeat(100_000);
    let flags = ProfileFlags::default();
    let Planned::Ask(next) = Planner::new().on_reply(whole(&huge), &flags, &task) else {
        panic!()
    };
    let chars: usize = next
        .messages(&task)
        .iter()
        .map(|message| match message {
            ChatMessage::System { content }
            | ChatMessage::User { content, .. }
            | ChatMessage::Assistant { content, .. } => content.chars().count(),
            other => panic!("{other:?}"),
        })
        .sum();
    assert!(chars < 24_000, "{chars}");
}

#[test]
fn a_planner_outlives_a_restart() {
    for phase in [Planner::new(), write("a", Some("b"))] {
        let stored = serde_json::to_string(&phase).unwrap();
        assert_eq!(serde_json::from_str::<Planner>(&stored).unwrap(), phase);
    }
}

#[test]
fn a_step_whose_call_went_down_with_its_process_is_that_of_the_next_call_of_its_tool() {
    let planned = plan("1. Read it | TOOL: filesystem\n2. Look it up | TOOL: web_search");
    let mut steps = ToolSteps::of(&planned.steps);
    let mut begins = |id: &str| {
        steps.on_todo(&of_plan(&planned.steps, &[], NOW));
        steps.begin(&call(id)).map(|mark| mark.number)
    };
    assert_eq!(begins("lost"), Some(1));
    assert_eq!(begins("again"), Some(1));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn whatever_the_model_writes_a_plan_is_sound(
        parts in prop::collection::vec(prop_oneof![
            prop::sample::select(vec![
                "\n", "\n", "1. ", "2) ", "3.1 ", " ", "TOOL: ", "filesystem", "AGENT: ", "SELF",
                "self", "server_admin", "(", ")", "[", "]", "|", "-", "—", ".", "**", "`", "```\n",
                "MILESTONE: ", "## ", "executor: ", "tool:", "<think>", "</think>", "слово", "REFLECT:",
            ]).prop_map(str::to_owned),
            ".{0,4}",
        ], 0..60),
    ) {
        let text = parts.concat();
        let _ = reply(Planner::new(), &text, true);
        if let Planned::Plan(planned) = reply(write("", None), &text, false) {
            prop_assert!((MIN_STEPS..=MAX_STEPS).contains(&planned.steps.len()));
            for (step, number) in planned.steps.iter().zip(1u32..) {
                prop_assert_eq!(step.number, number);
                prop_assert!(!step.text.trim().is_empty());
                prop_assert!(step.text.chars().count() <= MAX_TEXT_CHARS);
                prop_assert!(!step.text.contains('\n'));
            }
            // Its text tells the same steps as the list.
            let told = planned
                .text
                .lines()
                .filter(|line| {
                    let rest = line.trim_start().trim_start_matches(|c: char| c.is_ascii_digit());
                    rest.len() < line.trim_start().len() && rest.starts_with(['.', ')'])
                })
                .count();
            prop_assert_eq!(told, planned.steps.len());
        }
    }
}
