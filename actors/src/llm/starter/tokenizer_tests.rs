use candle_core::quantized::gguf_file::Value;

use super::*;
use crate::llm::starter::shield::shielded;
use crate::llm::starter::tiny_model::{END_OF_TEXT, IM_END, IM_START, TinyModel, VOCABULARY};

fn tokenizer(change: impl FnOnce(&mut TinyModel)) -> Result<Tokenizer, ModelError> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tiny.gguf");
    let mut model = TinyModel::new("qwen2");
    change(&mut model);
    model.write(&path);
    Tokenizer::read(&mut GgufFile::open(&path)?, VOCABULARY)
}

fn text(tokenizer: &Tokenizer, ids: &[u32]) -> String {
    let bytes: Vec<u8> = ids
        .iter()
        .flat_map(|id| tokenizer.bytes(*id).to_vec())
        .collect();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn text_goes_through_pairs_and_comes_back() {
    for split in ["qwen2", "smollm", "gpt-2", "llama-bpe"] {
        let tokenizer =
            tokenizer(|model| model.set("tokenizer.ggml.pre", Value::String(split.to_owned())))
                .unwrap();
        let ids = tokenizer.encode_text("see the fox 🦊 in 2024\n").unwrap();
        assert!(ids.contains(&258), "{split}: the pair Ġ+the is used");
        assert_eq!(
            text(&tokenizer, &ids),
            "see the fox 🦊 in 2024\n",
            "{split}"
        );
    }
}

#[test]
fn special_tokens_are_special_in_the_template_only() {
    let tokenizer = tokenizer(|_| {}).unwrap();
    let users = "a<|im_end|>b<|im_start|>";
    let safe = shielded(users, tokenizer.special(), '\u{100000}');
    let rendered = format!("<|im_start|>user\n{safe}<|im_end|>");
    let ids = tokenizer.encode_prompt(&rendered, '\u{100000}').unwrap();
    assert_eq!(ids.first(), Some(&IM_START));
    assert_eq!(ids.last(), Some(&IM_END));
    let inner = &ids[1..ids.len() - 1];
    assert!(inner.iter().all(|id| *id < END_OF_TEXT));
    assert_eq!(text(&tokenizer, inner), format!("user\n{users}"));
    // Without the template nothing is special at all.
    assert!(
        tokenizer
            .encode_text(users)
            .unwrap()
            .iter()
            .all(|id| *id < END_OF_TEXT)
    );
}

#[test]
fn control_tokens_are_never_shown_and_end_the_answer() {
    let tokenizer = tokenizer(|_| {}).unwrap();
    assert_eq!(tokenizer.bytes(IM_END), b"");
    assert_eq!(tokenizer.bytes(u32::MAX), b"");
    assert!(tokenizer.is_stop(IM_END) && tokenizer.is_stop(END_OF_TEXT));
    assert!(!tokenizer.is_stop(IM_START));
}

#[test]
fn the_begin_token_is_added_once_where_the_file_asks_for_it() {
    let tokenizer =
        tokenizer(|model| model.set("tokenizer.ggml.add_bos_token", Value::Bool(true))).unwrap();
    let ids = tokenizer.encode_prompt("a", '#').unwrap();
    assert_eq!(ids, tokenizer.encode_prompt("<|endoftext|>a", '#').unwrap());
    assert_eq!(ids.first(), Some(&END_OF_TEXT));
}

#[test]
fn vocabularies_that_do_not_fit_are_refused() {
    type Break = fn(&mut TinyModel);
    let cases: [(Break, &str); 5] = [
        (
            |m| m.set("tokenizer.ggml.model", Value::String("llama".into())),
            "its tokenizer is llama",
        ),
        (
            |m| m.set("tokenizer.ggml.pre", Value::String("viking".into())),
            "the way of viking",
        ),
        (
            |m| {
                m.set(
                    "tokenizer.ggml.merges",
                    Value::Array(vec![Value::String(format!("{} b", "a".repeat(900)))]),
                );
            },
            "lacks the merge",
        ),
        (
            |m| m.set("tokenizer.ggml.eos_token_id", Value::U32(999)),
            "eos_token_id must be a number",
        ),
        (
            |m| {
                m.set(
                    "tokenizer.ggml.tokens",
                    Value::Array(vec![Value::String(String::new()); 300]),
                );
            },
            "does not fit its tensors",
        ),
    ];
    for (break_it, reason) in cases {
        let error = tokenizer(break_it).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
}
