//! The decoder against a plain one, and against itself: what it remembers must not change
//! what it says.

use candle_core::quantized::gguf_file::Value;

use super::architecture::Architecture;
use super::decoder::{CHUNK, Decoder};
use super::error::ModelError;
use super::gguf::GgufFile;
use super::reference_decoder;
use super::tiny_model::{HEAD_WIDTH, TinyModel, VOCABULARY, WINDOW};

fn load(model: &TinyModel) -> Result<Decoder, ModelError> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tiny.gguf");
    model.write(&path);
    Decoder::load(&mut GgufFile::open(&path)?, usize::MAX)
}

fn prompt(length: u32) -> Vec<u32> {
    (0..length).map(|i| (i * 7 + 3) % 250).collect()
}

/// Reads a prompt as the engine does and gives back the last logits.
fn read(decoder: &mut Decoder, prompt: &[u32]) -> Vec<f32> {
    let kept = decoder.keep_prefix(prompt).unwrap();
    let mut logits = Vec::new();
    for chunk in prompt[kept..].chunks(CHUNK) {
        logits = decoder.forward(chunk, &|| false).unwrap();
    }
    logits
}

#[track_caller]
fn assert_close(left: &[f32], right: &[f32], tolerance: f32) {
    assert_eq!(left.len(), right.len());
    let largest = left.iter().map(|x| x.abs()).fold(0.0, f32::max);
    for (index, (a, b)) in left.iter().zip(right).enumerate() {
        assert!(
            (a - b).abs() <= tolerance * largest,
            "logit {index}: {a} and {b}"
        );
    }
}

#[test]
fn it_computes_what_the_papers_say() {
    for architecture in ["llama", "qwen2"] {
        let model = TinyModel::new(architecture);
        let prompt = prompt(20);
        let logits = read(&mut load(&model).unwrap(), &prompt);
        // Each matrix is rounded to eight bits once more at load, and so is each row.
        assert_close(
            &reference_decoder::logits(&model, architecture, &prompt),
            &logits,
            0.05,
        );
    }
}

#[test]
fn a_kept_prefix_gives_the_logits_of_a_fresh_read() {
    for architecture in ["llama", "qwen2"] {
        let model = TinyModel::new(architecture);
        let mut decoder = load(&model).unwrap();
        let first = prompt(80);
        let mut second = first[..45].to_vec();
        second.extend([9, 8, 7].repeat(12));
        read(&mut decoder, &first);
        assert_eq!(decoder.keep_prefix(&second), Ok(45));
        let kept = read(&mut decoder, &second);
        let fresh = read(&mut load(&model).unwrap(), &second);
        assert_close(&fresh, &kept, 1e-5);
    }
}

#[test]
fn the_whole_prompt_again_reads_its_last_token_only() {
    let mut decoder = load(&TinyModel::new("qwen2")).unwrap();
    let prompt = prompt(40);
    let first = read(&mut decoder, &prompt);
    assert_eq!(decoder.keep_prefix(&prompt), Ok(39));
    assert_close(&first, &read(&mut decoder, &prompt), 1e-5);
}

#[test]
fn what_was_read_before_something_else_is_still_known() {
    let model = TinyModel::new("qwen2");
    let mut decoder = load(&model).unwrap();
    let answer = prompt(120);
    let title: Vec<u32> = prompt(20).into_iter().chain([5; 60]).collect();
    read(&mut decoder, &answer);
    // It shares its beginning, which is not read again either.
    assert_eq!(decoder.keep_prefix(&title), Ok(20));
    read(&mut decoder, &title);
    let next: Vec<u32> = answer.iter().copied().chain([9; 30]).collect();
    assert_eq!(decoder.keep_prefix(&next), Ok(120));
    let known = read(&mut decoder, &next);
    assert_close(&read(&mut load(&model).unwrap(), &next), &known, 1e-5);
    assert_eq!(decoder.keep_prefix(&title), Ok(79));
}

#[test]
fn only_so_much_is_remembered() {
    let about = |topic: u32, length: usize| vec![topic; length];
    let mut decoder = load(&TinyModel::new("llama")).unwrap();
    for topic in 1..=4 {
        read(&mut decoder, &about(topic, 50));
    }
    assert_eq!(decoder.keep_prefix(&about(2, 60)), Ok(50));
    assert_eq!(
        decoder.keep_prefix(&about(1, 60)),
        Ok(0),
        "it was the oldest"
    );
    // One that fills the window leaves no room for others.
    read(&mut decoder, &about(5, WINDOW - 20));
    assert_eq!(decoder.keep_prefix(&about(2, 60)), Ok(0));
}

#[test]
fn the_cache_grows_past_its_first_room() {
    let model = TinyModel::new("llama");
    let mut decoder = load(&model).unwrap();
    let long = prompt(700);
    let at_once = read(&mut decoder, &long);
    let mut other = load(&model).unwrap();
    read(&mut other, &long[..300]);
    assert_close(&at_once, &read(&mut other, &long), 1e-5);
}

#[test]
fn a_pass_that_is_broken_off_changes_nothing() {
    let model = TinyModel::new("qwen2");
    let mut decoder = load(&model).unwrap();
    let prompt = prompt(30);
    read(&mut decoder, &prompt[..20]);
    let asked = std::cell::Cell::new(0);
    let second_layer = || {
        asked.set(asked.get() + 1);
        asked.get() > 1
    };
    let broken = decoder.forward(&[1, 2, 3], &second_layer);
    assert_eq!(broken, Err(ModelError::Cancelled));
    let fresh = read(&mut load(&model).unwrap(), &prompt);
    assert_close(&fresh, &read(&mut decoder, &prompt), 1e-5);
}

#[test]
fn nothing_is_read_past_the_window() {
    let mut decoder = load(&TinyModel::new("llama")).unwrap();
    read(&mut decoder, &prompt(u32::try_from(WINDOW).unwrap()));
    assert!(decoder.forward(&[1], &|| false).is_err());
}

#[test]
fn files_that_do_not_fit_are_refused_with_the_reason() {
    type Break = fn(&mut TinyModel);
    let cases: [(Break, &str); 8] = [
        (
            |m| m.set("general.architecture", Value::String("gemma3".into())),
            "architecture is gemma3",
        ),
        (
            |m| m.set("llama.attention.head_count_kv", Value::U32(3)),
            "do not fit together",
        ),
        (
            |m| m.set("llama.block_count", Value::U32(3)),
            "blk.2.attn_q.weight is missing",
        ),
        (
            |m| m.set("llama.block_count", Value::U32(0)),
            "llama.block_count must be a number from 1",
        ),
        (
            |m| m.set("llama.embedding_length", Value::I32(-1)),
            "llama.embedding_length must be",
        ),
        (
            |m| m.set("llama.rope.freq_base", Value::F32(f32::NAN)),
            "must be a positive number",
        ),
        (
            |m| m.set("llama.expert_count", Value::U32(8)),
            "mixtures of experts",
        ),
        (
            |m| m.set("general.alignment", Value::U32(0)),
            "header is damaged",
        ),
    ];
    for (break_it, reason) in cases {
        let mut model = TinyModel::new("llama");
        break_it(&mut model);
        let error = load(&model).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn a_file_cut_off_anywhere_is_an_error_and_never_a_panic() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tiny.gguf");
    TinyModel::new("llama").write(&path);
    let whole = std::fs::read(&path).unwrap();
    for length in (0..whole.len()).step_by(997) {
        std::fs::write(&path, &whole[..length]).unwrap();
        let loaded = GgufFile::open(&path).and_then(|mut file| Decoder::load(&mut file, WINDOW));
        assert!(loaded.is_err(), "{length} of {} bytes", whole.len());
    }
}

#[test]
fn the_header_is_understood() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tiny.gguf");
    let mut model = TinyModel::new("qwen2");
    model.set("qwen2.rope.scaling.type", Value::String("yarn".to_owned()));
    model.set(
        "qwen2.rope.scaling.original_context_length",
        Value::U32(512),
    );
    model.write(&path);
    let architecture = Architecture::of(&GgufFile::open(&path).unwrap()).unwrap();
    assert_eq!(architecture.context, 512);
    assert_eq!(architecture.head_width, HEAD_WIDTH);
    assert_eq!(architecture.vocabulary, VOCABULARY);
}
