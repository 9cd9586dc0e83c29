//! The decoder once more, by its formulas on plain numbers, to hold the real one against.

#![allow(
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    reason = "a test says so by failing; the reference reads like the formulas"
)]

use std::collections::HashMap;

use candle_core::Device;

use super::tiny_model::{
    HEAD_WIDTH, HEADS, HIDDEN, INNER, KV_HEADS, LAYERS, TinyModel, VOCABULARY,
};

/// What follows the prompt, by the model's unrounded weights.
pub(super) fn logits(model: &TinyModel, architecture: &str, prompt: &[u32]) -> Vec<f32> {
    let tensors: HashMap<&str, Vec<f32>> = model
        .tensors
        .iter()
        .map(|(name, tensor)| {
            let plain = tensor.dequantize(&Device::Cpu).unwrap();
            (
                name.as_str(),
                plain.flatten_all().unwrap().to_vec1().unwrap(),
            )
        })
        .collect();
    let weight = |name: &str| tensors.get(name).unwrap().as_slice();
    let multiply = |name: &str, x: &[f32]| -> Vec<f32> {
        let mut y: Vec<f32> = weight(&format!("{name}.weight"))
            .chunks(x.len())
            .map(|row| row.iter().zip(x).map(|(a, b)| a * b).sum())
            .collect();
        if let Some(bias) = tensors.get(format!("{name}.bias").as_str()) {
            y.iter_mut().zip(bias).for_each(|(y, bias)| *y += bias);
        }
        y
    };
    let norm = |name: &str, x: &[f32]| -> Vec<f32> {
        let mean = x.iter().map(|x| x * x).sum::<f32>() / HIDDEN as f32;
        let scale = (mean + 1e-5).sqrt();
        x.iter()
            .zip(weight(name))
            .map(|(x, w)| x / scale * w)
            .collect()
    };
    let rotate = |x: &mut [f32], position: usize| {
        let half = HEAD_WIDTH / 2;
        for i in 0..half {
            let angle = position as f32 / 10_000_f32.powf(2.0 * i as f32 / HEAD_WIDTH as f32);
            let (a, b) = if architecture == "llama" {
                (2 * i, 2 * i + 1)
            } else {
                (i, i + half)
            };
            let (left, right) = (x[a], x[b]);
            x[a] = left * angle.cos() - right * angle.sin();
            x[b] = right * angle.cos() + left * angle.sin();
        }
    };
    let embedding = weight("token_embd.weight");
    let mut rows: Vec<Vec<f32>> = prompt
        .iter()
        .map(|id| {
            let from = usize::try_from(*id).unwrap() * HIDDEN;
            embedding[from..from + HIDDEN].to_vec()
        })
        .collect();
    for layer in 0..LAYERS {
        let name = |tail: &str| format!("blk.{layer}.{tail}");
        let (mut keys, mut values): (Vec<Vec<f32>>, Vec<Vec<f32>>) = (Vec::new(), Vec::new());
        for (position, row) in rows.iter_mut().enumerate() {
            let x = norm(&name("attn_norm.weight"), row);
            let mut query = multiply(&name("attn_q"), &x);
            let mut key = multiply(&name("attn_k"), &x);
            query
                .chunks_mut(HEAD_WIDTH)
                .for_each(|head| rotate(head, position));
            key.chunks_mut(HEAD_WIDTH)
                .for_each(|head| rotate(head, position));
            keys.push(key);
            values.push(multiply(&name("attn_v"), &x));
            let mut mixed = vec![0.0; HEADS * HEAD_WIDTH];
            for head in 0..HEADS {
                let own = head * HEAD_WIDTH..(head + 1) * HEAD_WIDTH;
                let shared = head / (HEADS / KV_HEADS) * HEAD_WIDTH;
                let shared = shared..shared + HEAD_WIDTH;
                let scores: Vec<f32> = keys
                    .iter()
                    .map(|key| {
                        let dot: f32 = query[own.clone()]
                            .iter()
                            .zip(&key[shared.clone()])
                            .map(|(a, b)| a * b)
                            .sum();
                        (dot / (HEAD_WIDTH as f32).sqrt()).exp()
                    })
                    .collect();
                let sum: f32 = scores.iter().sum();
                for (score, value) in scores.iter().zip(&values) {
                    for (out, v) in mixed[own.clone()].iter_mut().zip(&value[shared.clone()]) {
                        *out += score / sum * v;
                    }
                }
            }
            let attended = multiply(&name("attn_output"), &mixed);
            row.iter_mut().zip(attended).for_each(|(x, y)| *x += y);
            let x = norm(&name("ffn_norm.weight"), row);
            let gate = multiply(&name("ffn_gate"), &x);
            let up = multiply(&name("ffn_up"), &x);
            let inner: Vec<f32> = gate
                .iter()
                .zip(up)
                .map(|(g, u)| g / (1.0 + (-g).exp()) * u)
                .collect();
            assert_eq!(inner.len(), INNER);
            let fed = multiply(&name("ffn_down"), &inner);
            row.iter_mut().zip(fed).for_each(|(x, y)| *x += y);
        }
    }
    let last = norm("output_norm.weight", rows.last().unwrap());
    let head = if architecture == "llama" {
        "output"
    } else {
        "token_embd"
    };
    let logits = multiply(head, &last);
    assert_eq!(logits.len(), VOCABULARY);
    logits
}
