//! A file as it came in: what it is, and what the model can have of it.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use bytes::Bytes;

use super::images::MAX_IMAGE_BYTES;
use super::sniff::{self, Class, Kind};
use super::{DocumentError, ImageError, MAX_DOCUMENT_BYTES, MAX_TEXT_BYTES, PreparedImage};
use super::{permit, text, text_of};
use crate::background::on_files;
use crate::domain::files::MAX_INLINE_BYTES;
use crate::protocol::phrase::Phrase;

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Examined {
    pub media_type: String,
    /// Without a dot.
    pub extension: String,
    /// The beginning of its text, where it has any.
    pub text: Option<String>,
    /// How much there is in all, in bytes.
    pub text_bytes: u64,
    /// The whole text, where the file's own bytes are not that.
    pub converted_text: Option<String>,
    pub image: Option<PreparedImage>,
    /// Why the model has neither text nor image of it, as a clause.
    pub problem: Option<Phrase>,
}

/// Looks at a file. `name` is its sender's.
///
/// # Errors
/// Where the file cannot be read. What is wrong with its content is part of the answer.
pub async fn examine(path: &Path, name: &str) -> io::Result<Examined> {
    let kind = {
        let (path, name) = (path.to_owned(), name.to_owned());
        on_files(move || sniff::file(&path, &name)).await?
    };
    let mut examined = match kind.class {
        Class::Text => of_text(path.to_owned()).await?,
        Class::Image => of_image(path.to_owned()).await?,
        Class::Document => of_document(path.to_owned(), &kind).await?,
        Class::Other => Examined::default(),
    };
    examined.media_type = kind.media_type;
    examined.extension = kind.extension;
    Ok(examined)
}

async fn of_image(path: PathBuf) -> io::Result<Examined> {
    let permit = permit().await;
    let Some(bytes) = read(path, MAX_IMAGE_BYTES).await? else {
        return Ok(problem(ImageError::TooLarge.phrase()));
    };
    Ok(match permit.image(bytes).await {
        Ok(image) => Examined {
            image: Some(image),
            ..Examined::default()
        },
        Err(error) => problem(error.phrase()),
    })
}

async fn of_text(path: PathBuf) -> io::Result<Examined> {
    on_files(move || {
        let total = std::fs::metadata(&path)?.len();
        let mut head = Vec::new();
        let file = std::fs::File::open(&path)?;
        file.take(MAX_TEXT_BYTES as u64).read_to_end(&mut head)?;
        let (whole, same) = text::decoded(&head);
        let end = whole.floor_char_boundary(MAX_INLINE_BYTES);
        let text = Some(whole[..end].to_owned());
        Ok(if same {
            Examined {
                text,
                text_bytes: total,
                ..Examined::default()
            }
        } else {
            Examined {
                text,
                text_bytes: whole.len() as u64,
                converted_text: Some(whole.into_owned()),
                ..Examined::default()
            }
        })
    })
    .await
}

async fn of_document(path: PathBuf, kind: &Kind) -> io::Result<Examined> {
    let Some(bytes) = read(path, MAX_DOCUMENT_BYTES).await? else {
        return Ok(problem(DocumentError::TooLarge.phrase()));
    };
    Ok(match text_of(Bytes::from(bytes), &kind.media_type).await {
        Ok(whole) => {
            let end = whole.floor_char_boundary(MAX_INLINE_BYTES);
            Examined {
                text: Some(whole[..end].to_owned()),
                text_bytes: whole.len() as u64,
                converted_text: Some(whole),
                ..Examined::default()
            }
        }
        Err(error) => problem(error.phrase()),
    })
}

fn problem(problem: Phrase) -> Examined {
    Examined {
        problem: Some(problem),
        ..Examined::default()
    }
}

/// A file's bytes; none where it has more than `limit`.
async fn read(path: PathBuf, limit: usize) -> io::Result<Option<Vec<u8>>> {
    on_files(move || {
        let mut bytes = Vec::new();
        let file = std::fs::File::open(&path)?;
        file.take(limit as u64 + 1).read_to_end(&mut bytes)?;
        Ok((bytes.len() <= limit).then_some(bytes))
    })
    .await
}
