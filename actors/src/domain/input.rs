//! What a person may send: checked whole at the engine's door, before anything is stored.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};

use super::files::MAX_FILES;
use super::unseen::is_unseen;
use crate::protocol::command::{FileRef, UserInput};
use crate::protocol::error::{ErrorCode, NaviError, invalid};
use crate::protocol::phrase::{Phrase, PhraseCode};

/// The longest text, in bytes.
pub const MAX_CONTENT_BYTES: usize = 256 * 1024;
/// The most images of one message.
pub const MAX_IMAGES: usize = 8;
/// The largest image, in bytes after decoding.
pub const MAX_IMAGE_BYTES: usize = 10 * 1024 * 1024;
/// All images of a message together, in bytes after decoding.
pub const MAX_IMAGES_BYTES: usize = 32 * 1024 * 1024;
/// The longest `client_id`, in characters.
pub const MAX_CLIENT_ID_CHARS: usize = 128;
/// The longest name of a model, in characters: one may be a path.
pub const MAX_MODEL_CHARS: usize = 500;
/// What a frame or body that carries one message can need at most: the images in base64,
/// the text with every character escaped, and the fields around them.
pub const MAX_MESSAGE_JSON_BYTES: usize = 48 * 1024 * 1024;

/// The input in its one form: images as padded base64 without a `data:` prefix.
///
/// # Errors
/// The first thing that is wrong, with its limit.
pub fn validate(input: UserInput) -> Result<UserInput, NaviError> {
    let UserInput {
        content,
        images,
        files,
        attached: _,
        author: _,
        client_id,
        mode,
    } = input;
    validate_content(&content)?;
    if let Some(id) = &client_id {
        validate_client_id(id)?;
    }
    validate_files(&files)?;
    Ok(UserInput {
        content,
        images: validate_images(images)?,
        files,
        attached: Vec::new(),
        author: None,
        client_id,
        mode,
    })
}

/// Checks a message's text; a change of a waiting message has the same limits.
///
/// # Errors
/// It is blank, too long, or carries a NUL, which databases cannot keep.
pub fn validate_content(content: &str) -> Result<(), NaviError> {
    if content.len() > MAX_CONTENT_BYTES {
        let phrase = counted(PhraseCode::MessageTooLong, content.len(), MAX_CONTENT_BYTES);
        return Err(NaviError::said(ErrorCode::MessageTooLarge, phrase));
    }
    if is_blank(content) {
        return Err(NaviError::said(
            ErrorCode::EmptyMessage,
            PhraseCode::MessageEmpty,
        ));
    }
    if content.contains('\0') {
        return Err(invalid("content must not contain NUL characters"));
    }
    Ok(())
}

/// Checks the name of a model. Whether there is one of this name, the backends can tell when it
/// is called.
///
/// # Errors
/// It is empty, too long, or has characters that no name has.
pub fn validate_model(name: &str) -> Result<(), NaviError> {
    let chars = name.chars().count();
    if chars == 0 || chars > MAX_MODEL_CHARS {
        return Err(invalid(format!(
            "model must have 1 to {MAX_MODEL_CHARS} characters; this one has {chars}"
        )));
    }
    if is_blank(name) || name.chars().any(is_unseen) {
        return Err(invalid(
            "model must be a name as GET /api/status lists it, without characters that cannot be seen",
        ));
    }
    Ok(())
}

/// Nothing to read: white space and unseen characters only.
fn is_blank(content: &str) -> bool {
    content.chars().all(|c| c.is_whitespace() || is_unseen(c))
}

/// Checks the sender's own id of a message.
///
/// # Errors
/// It is empty, too long, or has control characters.
pub fn validate_client_id(id: &str) -> Result<(), NaviError> {
    if id.is_empty() || id.chars().count() > MAX_CLIENT_ID_CHARS {
        return Err(invalid(format!(
            "client_id must have 1 to {MAX_CLIENT_ID_CHARS} characters"
        )));
    }
    if id.chars().any(char::is_control) {
        return Err(invalid("client_id must not contain control characters"));
    }
    Ok(())
}

/// Whether there are such files, only the engine can tell.
fn validate_files(files: &[FileRef]) -> Result<(), NaviError> {
    if files.len() > MAX_FILES {
        let phrase = counted(PhraseCode::MessageFiles, files.len(), MAX_FILES);
        return Err(NaviError::said(ErrorCode::TooManyFiles, phrase));
    }
    for (index, file) in files.iter().enumerate() {
        if files[..index].iter().any(|other| other.path == file.path) {
            return Err(invalid(format!(
                "the file {:?} is attached twice",
                shortened(&file.path)
            )));
        }
    }
    Ok(())
}

/// There is no such message in the session.
#[must_use]
pub fn no_such_message() -> NaviError {
    NaviError::said(ErrorCode::MessageNotFound, PhraseCode::NoSuchMessage)
}

/// The error for a file that is not one of this session.
#[must_use]
pub fn no_such_file(path: &str) -> NaviError {
    let path = [("path", format!("{:?}", shortened(path)))];
    NaviError::said(
        ErrorCode::FileNotFound,
        Phrase::new(PhraseCode::NoSuchFile, path),
    )
}

/// So many there are, of at most so many.
fn counted(code: PhraseCode, n: usize, most: usize) -> Phrase {
    Phrase::new(code, [("n", n.to_string()), ("most", most.to_string())])
}

/// A message's images as bare base64.
///
/// # Errors
/// They are too many, too large together, or [`decode`] refuses one.
pub fn validate_images(images: Vec<String>) -> Result<Vec<String>, NaviError> {
    if images.len() > MAX_IMAGES {
        let phrase = counted(PhraseCode::MessageImages, images.len(), MAX_IMAGES);
        return Err(NaviError::said(ErrorCode::TooManyImages, phrase));
    }
    let mut total = 0;
    let mut normal = Vec::with_capacity(images.len());
    for (index, image) in images.into_iter().enumerate() {
        let bytes = decode(&image, index + 1)?;
        total += bytes.len();
        if total > MAX_IMAGES_BYTES {
            return Err(NaviError::new(
                ErrorCode::ImageTooLarge,
                format!(
                    "the images have over {MAX_IMAGES_BYTES} bytes together, which is the limit"
                ),
            ));
        }
        normal.push(STANDARD.encode(bytes));
    }
    Ok(normal)
}

/// The bytes of an image. `number` counts from 1, for the error.
///
/// # Errors
/// It is no base64, no image of a known kind, or too large.
pub fn decode(image: &str, number: usize) -> Result<Vec<u8>, NaviError> {
    let no_image = |reason: &str| {
        Err(NaviError::new(
            ErrorCode::InvalidImage,
            format!("image {number} {reason}"),
        ))
    };
    let base64 = match image.trim().strip_prefix("data:") {
        Some(url) => match url.split_once(',') {
            Some((kind, data)) if kind.ends_with(";base64") => data,
            _ => return no_image("is a data: URL without base64 data"),
        },
        None => image.trim(),
    };
    // Checked before decoding, so that a huge text costs nothing.
    if base64.len() / 4 * 3 > MAX_IMAGE_BYTES + 3 {
        return Err(image_too_large(number));
    }
    let engine = if base64.ends_with('=') {
        &STANDARD
    } else {
        &STANDARD_NO_PAD
    };
    let Ok(bytes) = engine.decode(base64) else {
        return no_image("is not valid base64");
    };
    if bytes.len() > MAX_IMAGE_BYTES {
        return Err(image_too_large(number));
    }
    if !is_known_image(&bytes) {
        return no_image("is no PNG, JPEG, GIF or WebP");
    }
    Ok(bytes)
}

fn is_known_image(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x89PNG\r\n\x1a\n")
        || bytes.starts_with(b"\xff\xd8\xff")
        || bytes.starts_with(b"GIF87a")
        || bytes.starts_with(b"GIF89a")
        || (bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP"))
}

fn image_too_large(number: usize) -> NaviError {
    NaviError::new(
        ErrorCode::ImageTooLarge,
        format!("image {number} has over {MAX_IMAGE_BYTES} bytes, which is the limit"),
    )
}

/// As much of a text as an error message should carry.
fn shortened(text: &str) -> String {
    text.chars().take(80).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\nrest";

    fn text(content: &str) -> UserInput {
        UserInput {
            content: content.to_owned(),
            ..UserInput::default()
        }
    }

    fn with_images(images: &[String]) -> UserInput {
        UserInput {
            images: images.to_vec(),
            ..text("look")
        }
    }

    fn code(input: UserInput) -> ErrorCode {
        validate(input).unwrap_err().code
    }

    #[test]
    fn each_fault_has_its_code() {
        assert_eq!(code(text("")), ErrorCode::EmptyMessage);
        assert_eq!(code(text(" \n\t\u{200b}\u{feff}")), ErrorCode::EmptyMessage);
        assert_eq!(code(text("a\0b")), ErrorCode::InvalidField);
        assert_eq!(
            code(text(&"x".repeat(MAX_CONTENT_BYTES + 1))),
            ErrorCode::MessageTooLarge
        );
        let png = STANDARD.encode(PNG);
        assert_eq!(code(with_images(&vec![png; 9])), ErrorCode::TooManyImages);
        for wrong in [
            "%%%",
            "",
            "aGVsbG8=",
            "data:image/png,xyz",
            "data:image/png;base64",
            "aGVs bG8=",
        ] {
            assert_eq!(
                code(with_images(&[wrong.to_owned()])),
                ErrorCode::InvalidImage,
                "{wrong}"
            );
        }
        let file = |at: usize| FileRef {
            name: "a".to_owned(),
            path: format!("uploads/{at}.txt"),
        };
        let with_files = |files: Vec<FileRef>| UserInput {
            files,
            ..text("hi")
        };
        let too_many = (0..=MAX_FILES).map(file).collect();
        assert_eq!(code(with_files(too_many)), ErrorCode::TooManyFiles);
        let twice = vec![file(1), file(1)];
        assert_eq!(code(with_files(twice)), ErrorCode::InvalidField);
        for id in [String::new(), "x".repeat(129), "a\nb".to_owned()] {
            let with_id = UserInput {
                client_id: Some(id),
                ..text("hi")
            };
            assert_eq!(code(with_id), ErrorCode::InvalidField);
        }
    }

    #[test]
    fn images_are_bounded_one_by_one_and_together() {
        let image = |bytes: usize| {
            let mut image = PNG.to_vec();
            image.resize(bytes, 0);
            STANDARD.encode(image)
        };
        assert!(validate(with_images(&[image(MAX_IMAGE_BYTES)])).is_ok());
        assert_eq!(
            code(with_images(&[image(MAX_IMAGE_BYTES + 1)])),
            ErrorCode::ImageTooLarge
        );
        assert_eq!(
            code(with_images(&vec![image(MAX_IMAGE_BYTES); 4])),
            ErrorCode::ImageTooLarge
        );
        let largest: usize = vec![image(MAX_IMAGES_BYTES / 4); 4]
            .iter()
            .map(String::len)
            .sum();
        assert!(largest + 6 * MAX_CONTENT_BYTES < MAX_MESSAGE_JSON_BYTES);
    }

    #[test]
    fn every_known_kind_of_image_passes_and_becomes_plain_base64() {
        let webp = b"RIFF\x00\x00\x00\x00WEBPVP8 ".as_slice();
        for bytes in [PNG, b"\xff\xd8\xff\xe0", b"GIF87a..", b"GIF89a..", webp] {
            let plain = STANDARD.encode(bytes);
            let forms = [
                plain.clone(),
                format!("data:image/x;base64,{plain}"),
                plain.trim_end_matches('=').to_owned(),
                format!(" {plain}\n"),
            ];
            for form in forms {
                let valid = validate(with_images(&[form])).unwrap();
                assert_eq!(valid.images, std::slice::from_ref(&plain));
            }
        }
    }

    proptest! {
        #[test]
        fn any_text_with_something_to_read_passes_unchanged(
            content in "[^\0]{0,200}[a-z][^\0]{0,200}",
            client_id in proptest::option::of("[a-zA-Z0-9-]{1,128}"),
        ) {
            let input = UserInput { content, client_id, ..UserInput::default() };
            prop_assert_eq!(validate(input.clone()).unwrap(), input);
        }

        #[test]
        fn validation_never_panics_and_what_passes_passes_again(
            content in any::<String>(),
            images in proptest::collection::vec(any::<String>(), 0..10),
            client_id in proptest::option::of(any::<String>()),
        ) {
            let input = UserInput { content, images, client_id, ..UserInput::default() };
            if let Ok(valid) = validate(input) {
                prop_assert_eq!(validate(valid.clone()).unwrap(), valid);
            }
        }
    }
}
