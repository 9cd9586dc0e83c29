//! A model small enough to be made by the tests that use it, with weights that mean nothing.

#![allow(
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    reason = "a test says so by failing; the numbers are small"
)]

use std::fs::File;
use std::path::Path;

use candle_core::quantized::gguf_file::{self, Value};
use candle_core::quantized::{GgmlDType, QTensor};
use candle_core::{Device, Tensor};

use super::tokenizer::byte_alphabet;

pub(super) const HIDDEN: usize = 64;
pub(super) const HEADS: usize = 4;
pub(super) const KV_HEADS: usize = 2;
pub(super) const HEAD_WIDTH: usize = HIDDEN / HEADS;
pub(super) const INNER: usize = 96;
pub(super) const LAYERS: usize = 2;
pub(super) const WINDOW: usize = 2048;

/// The 256 bytes, three merges, four control tokens; the matrices have a row to spare.
pub(super) const VOCABULARY: usize = 264;
pub(super) const END_OF_TEXT: u32 = 259;
pub(super) const IM_START: u32 = 260;
pub(super) const IM_END: u32 = 261;

/// A file that is about to be written; tests change what they want broken.
pub(super) struct TinyModel {
    pub(super) metadata: Vec<(String, Value)>,
    pub(super) tensors: Vec<(String, QTensor)>,
}

impl TinyModel {
    pub(super) fn new(architecture: &str) -> Self {
        let mut model = Self {
            metadata: metadata(architecture),
            tensors: Vec::new(),
        };
        let mut seed = 1;
        let mut add = |name: &str, shape: &[usize], dtype| {
            seed += 1;
            let tensor = QTensor::quantize(&random(shape, seed), dtype).unwrap();
            model.tensors.push((name.to_owned(), tensor));
        };
        add("token_embd.weight", &[VOCABULARY, HIDDEN], GgmlDType::Q8_0);
        add("output_norm.weight", &[HIDDEN], GgmlDType::F32);
        if architecture == "llama" {
            add("output.weight", &[VOCABULARY, HIDDEN], GgmlDType::Q4_0);
        }
        let (queries, keys) = (HEADS * HEAD_WIDTH, KV_HEADS * HEAD_WIDTH);
        for layer in 0..LAYERS {
            let mut add = |name: &str, shape: &[usize], dtype| {
                add(&format!("blk.{layer}.{name}"), shape, dtype);
            };
            add("attn_norm.weight", &[HIDDEN], GgmlDType::F32);
            add("ffn_norm.weight", &[HIDDEN], GgmlDType::F32);
            // Each encoding that is made anew at load, and some that are not.
            add("attn_q.weight", &[queries, HIDDEN], GgmlDType::Q4_1);
            add("attn_k.weight", &[keys, HIDDEN], GgmlDType::Q5_0);
            add("attn_v.weight", &[keys, HIDDEN], GgmlDType::Q5_1);
            add("attn_output.weight", &[HIDDEN, queries], GgmlDType::F32);
            add("ffn_gate.weight", &[INNER, HIDDEN], GgmlDType::Q8_0);
            add("ffn_up.weight", &[INNER, HIDDEN], GgmlDType::Q8_0);
            add("ffn_down.weight", &[HIDDEN, INNER], GgmlDType::Q8_0);
            if architecture == "qwen2" {
                add("attn_q.bias", &[queries], GgmlDType::F32);
                add("attn_k.bias", &[keys], GgmlDType::F32);
                add("attn_v.bias", &[keys], GgmlDType::F32);
            }
        }
        model
    }

    pub(super) fn set(&mut self, key: &str, value: Value) {
        self.metadata.retain(|(existing, _)| existing != key);
        self.metadata.push((key.to_owned(), value));
    }

    pub(super) fn write(&self, path: &Path) {
        let metadata: Vec<(&str, &Value)> = self
            .metadata
            .iter()
            .map(|(key, value)| (key.as_str(), value))
            .collect();
        let tensors: Vec<(&str, &QTensor)> = self
            .tensors
            .iter()
            .map(|(name, tensor)| (name.as_str(), tensor))
            .collect();
        gguf_file::write(&mut File::create(path).unwrap(), &metadata, &tensors).unwrap();
    }
}

fn metadata(architecture: &str) -> Vec<(String, Value)> {
    let number = |number: usize| Value::U32(u32::try_from(number).unwrap());
    let text = |text: &str| Value::String(text.to_owned());
    let own = |tail: &str| format!("{architecture}.{tail}");
    let mut tokens: Vec<String> = byte_alphabet()
        .map(|(_, letter)| letter.to_string())
        .collect();
    tokens.extend(
        [
            "Ġt",
            "he",
            "Ġthe",
            "<|endoftext|>",
            "<|im_start|>",
            "<|im_end|>",
            "<tool_call>",
        ]
        .map(str::to_owned),
    );
    let kinds = (0..tokens.len()).map(|id| Value::I32(if id >= 259 { 3 } else { 1 }));
    vec![
        ("general.architecture".to_owned(), text(architecture)),
        (own("block_count"), number(LAYERS)),
        (own("context_length"), number(WINDOW)),
        (own("embedding_length"), number(HIDDEN)),
        (own("feed_forward_length"), number(INNER)),
        (own("attention.head_count"), number(HEADS)),
        (own("attention.head_count_kv"), number(KV_HEADS)),
        (own("attention.layer_norm_rms_epsilon"), Value::F32(1e-5)),
        (own("rope.freq_base"), Value::F32(10_000.0)),
        ("tokenizer.ggml.model".to_owned(), text("gpt2")),
        ("tokenizer.ggml.pre".to_owned(), text("qwen2")),
        (
            "tokenizer.ggml.token_type".to_owned(),
            Value::Array(kinds.collect()),
        ),
        (
            "tokenizer.ggml.tokens".to_owned(),
            Value::Array(tokens.into_iter().map(Value::String).collect()),
        ),
        (
            "tokenizer.ggml.merges".to_owned(),
            Value::Array(["Ġ t", "h e", "Ġt he"].map(text).into()),
        ),
        ("tokenizer.ggml.eos_token_id".to_owned(), Value::U32(IM_END)),
        (
            "tokenizer.ggml.bos_token_id".to_owned(),
            Value::U32(END_OF_TEXT),
        ),
    ]
}

/// Numbers between -0.5 and 0.5, the same for the same seed.
fn random(shape: &[usize], seed: u64) -> Tensor {
    let mut state = seed;
    let numbers: Vec<f32> = (0..shape.iter().product::<usize>())
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f32 / (1_u32 << 24) as f32 - 0.5
        })
        .collect();
    Tensor::from_vec(numbers, shape, &Device::Cpu).unwrap()
}
