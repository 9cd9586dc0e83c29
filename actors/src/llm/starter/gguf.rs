//! Reading a GGUF file that nobody vouches for. What its header claims is checked against the
//! file's size and against plain bounds before anything is allocated for it.

use std::fs::File;
use std::io::{Cursor, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use candle_core::Device;
use candle_core::quantized::gguf_file::{Content, Value};
use candle_core::quantized::{GgmlDType, QTensor};

use super::error::ModelError;

/// The header of a model with 150,000 tokens is 6 MB. A parsed header takes up to thirty times
/// its size in memory, so that a whole file of header must not be let in.
const MAX_HEADER_BYTES: u64 = 48 << 20;

/// No tensor of a model that fits a personal machine has more elements.
const MAX_ELEMENTS: usize = 1 << 33;

/// An opened model file: its metadata is in memory, its tensors are read one by one.
#[derive(Debug)]
pub(super) struct GgufFile {
    path: PathBuf,
    file: File,
    content: Content,
}

impl GgufFile {
    /// Opens the file and parses its header.
    pub(super) fn open(path: &Path) -> Result<Self, ModelError> {
        let unreadable = |error: std::io::Error| ModelError::Unreadable {
            path: path.display().to_string(),
            reason: error.to_string(),
        };
        let mut file = File::open(path).map_err(unreadable)?;
        if !file.metadata().map_err(unreadable)?.is_file() {
            return Err(ModelError::Unreadable {
                path: path.display().to_string(),
                reason: "it is no regular file".to_owned(),
            });
        }
        let mut header = Vec::new();
        Read::by_ref(&mut file)
            .take(MAX_HEADER_BYTES)
            .read_to_end(&mut header)
            .map_err(unreadable)?;
        // The parser divides by an alignment that the file gives; a zero makes it panic.
        let content = catch_unwind(AssertUnwindSafe(|| {
            Content::read(&mut Cursor::new(&header))
        }))
        .map_err(|_| "its header is damaged".to_owned())
        .and_then(|parsed| parsed.map_err(|error| format!("its header is damaged: {error}")));
        match content {
            Ok(content) => Ok(Self {
                path: path.to_owned(),
                file,
                content,
            }),
            Err(reason) => Err(ModelError::Unsupported {
                path: path.display().to_string(),
                reason,
            }),
        }
    }

    /// An error that names this file.
    pub(super) fn unsupported(&self, reason: impl Into<String>) -> ModelError {
        ModelError::Unsupported {
            path: self.path.display().to_string(),
            reason: reason.into(),
        }
    }

    pub(super) fn text(&self, key: &str) -> Option<&str> {
        match self.content.metadata.get(key) {
            Some(Value::String(text)) => Some(text),
            _ => None,
        }
    }

    /// A number that may be missing; one that is there must lie in `range`.
    pub(super) fn number(
        &self,
        key: &str,
        range: std::ops::RangeInclusive<usize>,
    ) -> Result<Option<usize>, ModelError> {
        let Some(value) = self.content.metadata.get(key) else {
            return Ok(None);
        };
        integer(value)
            .filter(|number| range.contains(number))
            .map(Some)
            .ok_or_else(|| {
                self.unsupported(format!(
                    "{key} must be a number from {} to {}",
                    range.start(),
                    range.end()
                ))
            })
    }

    /// A number that must be there, in `range`.
    pub(super) fn required(
        &self,
        key: &str,
        range: std::ops::RangeInclusive<usize>,
    ) -> Result<usize, ModelError> {
        self.number(key, range)?
            .ok_or_else(|| self.unsupported(format!("{key} is missing")))
    }

    /// A positive fraction, `default` where it is missing.
    pub(super) fn fraction(&self, key: &str, default: f32) -> Result<f32, ModelError> {
        match self.content.metadata.get(key) {
            None => Ok(default),
            Some(Value::F32(number)) if number.is_finite() && *number > 0.0 => Ok(*number),
            Some(_) => Err(self.unsupported(format!("{key} must be a positive number"))),
        }
    }

    pub(super) fn flag(&self, key: &str) -> Option<bool> {
        match self.content.metadata.get(key) {
            Some(Value::Bool(flag)) => Some(*flag),
            _ => None,
        }
    }

    /// A list of texts, taken out of the header.
    pub(super) fn take_texts(&mut self, key: &str) -> Result<Vec<String>, ModelError> {
        let Some(Value::Array(values)) = self.content.metadata.remove(key) else {
            return Err(self.unsupported(format!("{key} is missing")));
        };
        values
            .into_iter()
            .map(|value| match value {
                Value::String(text) => Ok(text),
                _ => Err(self.unsupported(format!("{key} must hold texts"))),
            })
            .collect()
    }

    /// A list of numbers; none where it is missing.
    pub(super) fn numbers(&self, key: &str) -> Result<Option<Vec<usize>>, ModelError> {
        match self.content.metadata.get(key) {
            None => Ok(None),
            Some(Value::Array(values)) => values
                .iter()
                .map(|value| {
                    integer(value).ok_or_else(|| {
                        self.unsupported(format!("{key} must hold numbers of at least 0"))
                    })
                })
                .collect::<Result<_, _>>()
                .map(Some),
            Some(_) => Err(self.unsupported(format!("{key} must be a list"))),
        }
    }

    /// The shape that the header gives for a tensor, outermost dimension first.
    pub(super) fn shape(&self, name: &str) -> Option<&[usize]> {
        self.content
            .tensor_infos
            .get(name)
            .map(|info| info.shape.dims())
    }

    /// Reads a tensor of exactly this shape.
    pub(super) fn tensor(&mut self, name: &str, shape: &[usize]) -> Result<QTensor, ModelError> {
        let Some(info) = self.content.tensor_infos.get(name) else {
            return Err(self.unsupported(format!("the tensor {name} is missing")));
        };
        let found = info.shape.dims();
        if found != shape {
            return Err(self.unsupported(format!(
                "the tensor {name} has the shape {found:?} instead of {shape:?}"
            )));
        }
        let elements = shape
            .iter()
            .try_fold(1_usize, |product, dim| product.checked_mul(*dim))
            .filter(|elements| (1..=MAX_ELEMENTS).contains(elements));
        let blocks_fit = shape
            .last()
            .is_some_and(|width| width.is_multiple_of(info.ggml_dtype.block_size()));
        if elements.is_none() || !blocks_fit {
            return Err(self.unsupported(format!(
                "the tensor {name} has a shape that no model has: {found:?}"
            )));
        }
        info.read(
            &mut self.file,
            self.content.tensor_data_offset,
            &Device::Cpu,
        )
        .map_err(|error| self.unsupported(format!("the tensor {name}: {error}")))
    }

    /// Reads a matrix, in an encoding that candle multiplies fast: its kernels for Q4_1, Q5_0
    /// and Q5_1 are plain loops, those for Q8_0 use the processor's vector instructions.
    pub(super) fn matrix(&mut self, name: &str, shape: &[usize]) -> Result<QTensor, ModelError> {
        let tensor = self.tensor(name, shape)?;
        match tensor.dtype() {
            GgmlDType::Q4_1 | GgmlDType::Q5_0 | GgmlDType::Q5_1 => {
                let plain = tensor.dequantize(&Device::Cpu)?;
                Ok(QTensor::quantize(&plain, GgmlDType::Q8_0)?)
            }
            _ => Ok(tensor),
        }
    }
}

fn integer(value: &Value) -> Option<usize> {
    match *value {
        Value::U8(number) => Some(number.into()),
        Value::U16(number) => Some(number.into()),
        Value::U32(number) => usize::try_from(number).ok(),
        Value::U64(number) => usize::try_from(number).ok(),
        Value::I8(number) => usize::try_from(number).ok(),
        Value::I16(number) => usize::try_from(number).ok(),
        Value::I32(number) => usize::try_from(number).ok(),
        Value::I64(number) => usize::try_from(number).ok(),
        Value::F32(_) | Value::F64(_) | Value::Bool(_) | Value::String(_) | Value::Array(_) => None,
    }
}
