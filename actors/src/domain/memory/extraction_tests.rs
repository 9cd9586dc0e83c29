use super::*;

fn said(by: Speaker, text: &str, seconds: i64) -> Said {
    let at = DateTime::from_timestamp(seconds, 0).unwrap();
    Said::new(MessageId::new(), by, text, at)
}

fn names(found: &[Found]) -> Vec<String> {
    found
        .iter()
        .map(|found| format!("{}={}", found.name, found.value))
        .collect()
}

const SISTER: &str =
    r#"{"category":"people","key":"sister_name","value":"Olena","confidence":0.9}"#;

#[test]
fn an_answer_is_read_however_it_is_wrapped() {
    let expected = Some(vec!["people/sister_name=Olena".to_owned()]);
    for answer in [
        format!("[{SISTER}]"),
        format!("```json\n[{SISTER}]\n```"),
        format!("Here are the facts [as asked]:\n[{SISTER}]\nAnything else?"),
        SISTER.to_owned(),
        format!("{{\"facts\": [{SISTER}]}}"),
        format!("{SISTER}\n"),
        // The output limit came in the middle of the second.
        format!("[{SISTER}, {{\"category\": \"work\", \"key\": \"jo"),
    ] {
        let found = parse(&answer).map(|found| names(&found));
        assert_eq!(found, expected, "{answer}");
    }
    assert_eq!(parse("[]"), Some(Vec::new()));
    assert_eq!(parse("Nothing lasting.\n\n[]"), Some(Vec::new()));
    for answer in ["", "There are no facts.", "see [1]", "[[[[[{{{{{"] {
        assert_eq!(parse(answer), None, "{answer}");
    }
}

#[test]
fn fields_are_put_into_form_and_bounded() {
    let answer = format!(
        r#"[{{"category":"Pets","key":"Dog Name","value":"Rex"}},
            {{"category":"WORK","key":"years","value":7,"confidence":"0.4"}},
            {{"category":"work","key":"skills","value":["Rust","SQL"],"confidence":9}},
            {{"category":"work","key":"boss","value":"unknown"}},
            {{"category":"work","key":"office","value":null}},
            {{"category":"work","value":"no key"}},
            {{"category":"other","key":"long","value":"{}"}}]"#,
        "x".repeat(5_000)
    );
    let found = parse(&answer).unwrap();
    assert_eq!(
        names(&found)[..3],
        [
            "other/dog_name=Rex",
            "work/years=7",
            "work/skills=Rust, SQL"
        ]
    );
    let confidences: Vec<f32> = found.iter().map(|found| found.confidence).collect();
    assert_eq!(confidences, [0.8, 0.4, 1.0, 0.8]);
    assert_eq!(found[3].value.len(), MAX_VALUE_CHARS);
    let many = format!("[{}]", vec![SISTER; 100].join(","));
    assert_eq!(parse(&many).unwrap().len(), MAX_FOUND);
}

#[test]
fn secrets_are_never_taken_unasked() {
    for (key, value) in [
        ("wifi_password", "hunter2"),
        ("apiKey", "x1"),
        ("github", "ghp_16C7e42F292c6912E7710c838347Ae178B4a"),
        ("card", "4111111111111111"),
    ] {
        let item = format!(r#"[{{"category":"other","key":"{key}","value":"{value}"}}]"#);
        assert_eq!(parse(&item), Some(Vec::new()), "{key}");
    }
    let phone = r#"[{"category":"identity","key":"phone","value":"+380501234567"}]"#;
    assert_eq!(parse(phone).unwrap().len(), 1);
}

#[test]
fn a_fact_comes_from_the_message_that_holds_its_words() {
    let talk = [
        said(Speaker::User, "My sister Olena lives in Lviv.", 1),
        said(Speaker::Assistant, "Nice! Is Borys your dog?", 2),
        said(Speaker::User, "Thanks. I work in Kharkiv as a nurse.", 3),
        said(Speaker::User, "Now translate this.", 4),
    ];
    let found = |key: &str, value: &str| Found {
        name: FactName::new("other", key).unwrap(),
        value: value.to_owned(),
        confidence: 0.9,
    };
    let session = SessionId::new();
    let facts = believed(
        vec![
            found("sister", "Olena from Lviv"),
            found("job", "nurse in Kharkivʼs hospital"),
            found("dog", "Borys"),
            found("tone", "розмовний"),
        ],
        &talk,
        session,
    );
    let sources: Vec<(&str, Option<MessageId>, f32)> = facts
        .iter()
        .map(|fact| {
            assert_eq!(fact.source.session_id, Some(session));
            let key = fact.name.key.as_str();
            (key, fact.source.message_id, fact.confidence)
        })
        .collect();
    assert_eq!(
        sources,
        [
            ("sister", Some(talk[0].message_id), 0.9),
            ("job", Some(talk[2].message_id), 0.9),
            // What the assistant alone said, the dog, is not believed; what nobody said in
            // these words is not taken for certain.
            ("tone", Some(talk[3].message_id), UNCONFIRMED),
        ]
    );
    assert_eq!(facts[1].at, talk[2].at);
    assert_eq!(
        believed(vec![found("dog", "Borys")], &talk[1..2], session),
        []
    );
}

#[test]
fn the_prompt_is_bounded_and_names_what_is_known() {
    let talk: Vec<Said> = (0..50)
        .map(|n| said(Speaker::User, &"довго ".repeat(400), n))
        .collect();
    let known: Vec<Fact> = (0..500)
        .map(|n| Fact {
            category: "people".into(),
            key: format!("friend_{n}"),
            value: "Ann".into(),
            source: FactSource::default(),
            confidence: 1.0,
            created_at: DateTime::UNIX_EPOCH,
            updated_at: DateTime::UNIX_EPOCH,
        })
        .collect();
    let messages = prompt(&talk, &known, 3_000);
    let [
        ChatMessage::System { content: system },
        ChatMessage::User { content: user, .. },
    ] = messages.as_slice()
    else {
        unreachable!("two messages: {messages:?}");
    };
    assert!(system.contains("people/friend_0: Ann"));
    assert!(system.len() < INSTRUCTION.len() + KNOWN_BYTES + 600);
    assert!(user.len() < 3_200, "{}", user.len());
    assert!(user.contains("User: довго") && user.contains("bytes cut here"));
    assert_eq!(user.matches("User: ").count(), 1);
}

#[test]
fn a_message_that_is_too_large_is_read_in_parts_whole() {
    let sentence = "Мій кіт спить. ";
    let before = said(Speaker::Assistant, "Hm?", 1);
    let small = said(Speaker::User, "Hi.", 2);
    for text in [sentence.repeat(200), "кіт ".repeat(900), "ї".repeat(4_000)] {
        let large = said(Speaker::User, &text, 3);
        let parts = parts(&[before.clone(), small.clone(), large.clone()], 1_500);
        assert!(parts.len() > 3, "{}", parts.len());
        let all: Vec<&Said> = parts.iter().flatten().collect();
        assert_eq!(all[..2], [&before, &small]);
        let read: Vec<&str> = all[2..].iter().map(|said| said.text.as_str()).collect();
        let bare = |text: &str| text.replace(' ', "");
        assert_eq!(bare(&read.concat()), bare(&text), "nothing is left out");
        assert!(all[2..].iter().all(|it| it.message_id == large.message_id));
        for part in &parts {
            let asked = format!("{:?}", prompt(part, &[], 1_500));
            assert!(!asked.contains("cut here"), "{asked}");
        }
        if text.starts_with(sentence) {
            assert!(read.iter().all(|piece| piece.ends_with('.')), "{read:?}");
        }
    }
    let fits = [before, small];
    assert_eq!(parts(&fits, 1_500), [fits]);
}

#[test]
fn an_assistants_answer_is_shortened() {
    let long = said(Speaker::Assistant, &"a".repeat(9_000), 1);
    assert_eq!(long.text.len(), ASSISTANT_CHARS);
    assert!(!is_worth_reading(&[long]));
}

#[test]
fn what_the_assistant_repeats_of_a_page_is_no_fact() {
    let tainted = |by, text, seconds| Said {
        tainted: true,
        ..said(by, text, seconds)
    };
    let conversation = [
        said(Speaker::User, "I live in Lviv", 1),
        said(Speaker::Assistant, "A nice city, Lviv", 2),
        tainted(Speaker::User, "What does the page say of my bank?", 3),
        tainted(Speaker::Assistant, "Your bank is Mallory Trust", 4),
        tainted(Speaker::User, "Thanks. My bank is called Oschad", 5),
    ];
    let asked = format!("{:?}", prompt(&conversation, &[], 10_000));
    assert!(
        asked.contains("A nice city") && !asked.contains("Mallory"),
        "{asked}"
    );
    let fact = |key: &str, value: &str| Found {
        name: FactName::new("other", key).unwrap(),
        value: value.to_owned(),
        confidence: 0.9,
    };
    let found = vec![
        fact("city", "Lviv"),
        fact("bank", "Oschad"),
        fact("page_bank", "bank Mallory Trust"),
        fact("page_only", "Mallory Trust"),
        fact("in_other_words", "bank customer"),
    ];
    let facts = believed(found, &conversation, SessionId::new());
    let facts: Vec<_> = facts
        .iter()
        .map(|fact| (fact.name.key.as_str(), fact.confidence > UNCONFIRMED))
        .collect();
    assert_eq!(
        facts,
        [("city", true), ("bank", true), ("in_other_words", false)]
    );
}
