//! The three operations of a decoder that candle's core leaves to others: the norm, the
//! rotation and the masked softmax. Each works on its rows alone, so that a row's result does
//! not depend on which rows were computed with it.

use candle_core::{CpuStorage, CustomOp1, InplaceOp1, Layout, Result, Shape, bail};

use super::architecture::{Architecture, RopePairs};

/// Divides each row by its root mean square and scales it.
#[derive(Debug)]
pub(super) struct RmsNorm {
    pub(super) weight: Vec<f32>,
    pub(super) epsilon: f32,
}

impl CustomOp1 for RmsNorm {
    fn name(&self) -> &'static str {
        "rms-norm"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let rows = contiguous(self.name(), storage.as_slice::<f32>()?, layout)?;
        let width = self.weight.len();
        let mut normed = Vec::with_capacity(rows.len());
        for row in rows.chunks_exact(width) {
            let square: f32 = row.iter().map(|x| x * x).sum();
            #[expect(clippy::cast_precision_loss, reason = "a width is far below 2^24")]
            let scale = 1.0 / (square / width as f32 + self.epsilon).sqrt();
            normed.extend(row.iter().zip(&self.weight).map(|(x, w)| x * scale * w));
        }
        Ok((CpuStorage::F32(normed), layout.shape().clone()))
    }
}

/// Sines and cosines of every position up to the window's end.
#[derive(Debug)]
pub(super) struct RopeTable {
    cos: Vec<f32>,
    sin: Vec<f32>,
    half: usize,
    pairs: RopePairs,
}

impl RopeTable {
    /// `factors` slow single frequencies down (llama 3's long windows); empty for none.
    pub(super) fn new(architecture: &Architecture, factors: &[f32], window: usize) -> Self {
        let half = architecture.head_width / 2;
        #[expect(clippy::cast_precision_loss, reason = "widths and positions are small")]
        let angles = (0..window).flat_map(|position| {
            (0..half).map(move |i| {
                let exponent = i as f32 / half as f32;
                let slowed = factors.get(i).copied().unwrap_or(1.0) * architecture.rope_scale;
                position as f32 / (architecture.rope_base.powf(exponent) * slowed)
            })
        });
        let (cos, sin) = angles.map(|angle| (angle.cos(), angle.sin())).unzip();
        Self {
            cos,
            sin,
            half,
            pairs: architecture.rope_pairs,
        }
    }

    /// The rotation of rows that stand at `start` and after.
    pub(super) fn at(&self, start: usize) -> Rope<'_> {
        Rope { table: self, start }
    }
}

/// Rotates the heads of `[tokens, heads, width]` by their tokens' positions.
#[derive(Debug)]
pub(super) struct Rope<'a> {
    table: &'a RopeTable,
    start: usize,
}

impl InplaceOp1 for Rope<'_> {
    fn name(&self) -> &'static str {
        "rope"
    }

    fn cpu_fwd(&self, storage: &mut CpuStorage, layout: &Layout) -> Result<()> {
        let (_, heads, width) = layout.shape().dims3()?;
        let rows = contiguous_mut(self.name(), storage, layout)?;
        let half = self.table.half;
        for (token, row) in rows.chunks_exact_mut(heads * width).enumerate() {
            let from = (self.start + token) * half;
            let (Some(cos), Some(sin)) = (
                self.table.cos.get(from..from + half),
                self.table.sin.get(from..from + half),
            ) else {
                bail!("position {} is beyond the window", self.start + token)
            };
            for head in row.chunks_exact_mut(width) {
                for i in 0..half {
                    let (a, b) = match self.table.pairs {
                        RopePairs::Neighbours => (2 * i, 2 * i + 1),
                        RopePairs::Halves => (i, i + half),
                    };
                    let (x, y) = (head[a], head[b]);
                    head[a] = x * cos[i] - y * sin[i];
                    head[b] = x * sin[i] + y * cos[i];
                }
            }
        }
        Ok(())
    }
}

/// Scales the scores `[key heads, queries, positions]`, hides from each query what comes after
/// it, and makes the rest sum to one. The queries of one key head are its query heads' tokens,
/// head by head.
#[derive(Debug)]
pub(super) struct CausalSoftmax {
    pub(super) scale: f32,
    /// How many tokens of each head there are.
    pub(super) tokens: usize,
    /// The position of the first token.
    pub(super) start: usize,
}

impl InplaceOp1 for CausalSoftmax {
    fn name(&self) -> &'static str {
        "causal-softmax"
    }

    fn cpu_fwd(&self, storage: &mut CpuStorage, layout: &Layout) -> Result<()> {
        let (_, queries, positions) = layout.shape().dims3()?;
        if !queries.is_multiple_of(self.tokens) || self.start + self.tokens > positions {
            bail!("{queries} queries do not fit {positions} positions")
        }
        let rows = contiguous_mut(self.name(), storage, layout)?;
        for (query, row) in rows.chunks_exact_mut(positions).enumerate() {
            let (seen, hidden) = row.split_at_mut(self.start + query % self.tokens + 1);
            hidden.fill(0.0);
            let highest = seen.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let mut sum = 0.0;
            for score in seen.iter_mut() {
                *score = ((*score - highest) * self.scale).exp();
                sum += *score;
            }
            for score in seen {
                *score /= sum;
            }
        }
        Ok(())
    }
}

fn contiguous<'a>(name: &str, values: &'a [f32], layout: &Layout) -> Result<&'a [f32]> {
    match layout.contiguous_offsets() {
        Some((from, to)) => Ok(&values[from..to]),
        None => bail!("{name} needs its rows one after another"),
    }
}

fn contiguous_mut<'a>(
    name: &str,
    storage: &'a mut CpuStorage,
    layout: &Layout,
) -> Result<&'a mut [f32]> {
    match (storage, layout.contiguous_offsets()) {
        (CpuStorage::F32(values), Some((from, to))) => Ok(&mut values[from..to]),
        _ => bail!("{name} needs f32 rows one after another"),
    }
}
