//! A server's answer as a result for the model.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};

use crate::tools::output::{human_size, shortened};
use crate::tools::spill::bounded;
use crate::tools::{ToolContext, ToolError, ToolImage, ToolOutput, ToolResult};

const MAX_IMAGES: usize = 4;
const MAX_IMAGE_BYTES: usize = 5 * 1024 * 1024;
const SHOWN_BYTES: usize = 300;

/// The answer's text and images, within bounds. Blocks.
pub(super) fn read(answer: CallToolResult, context: &ToolContext) -> ToolResult {
    let mut text = String::new();
    let mut images = Vec::new();
    for block in answer.content {
        add(block, &mut text, &mut images);
    }
    // The same as the text, as a rule, and for programs.
    if let Some(structured) = answer.structured_content
        && text.trim().is_empty()
    {
        text = format!("{structured:#}");
    }
    let text = text.trim_end().to_owned();
    let text = bounded(text, &context.workspace, &context.call_id);
    if answer.is_error == Some(true) {
        return Err(ToolError(if text.is_empty() {
            "the server says no more than that".to_owned()
        } else {
            text
        }));
    }
    Ok(ToolOutput {
        text: if text.is_empty() && images.is_empty() {
            "(it gave back nothing)".to_owned()
        } else {
            text
        },
        images,
        ..ToolOutput::default()
    })
}

fn add(block: ContentBlock, text: &mut String, images: &mut Vec<ToolImage>) {
    match block {
        ContentBlock::Text(block) => line(text, &block.text),
        ContentBlock::Image(image) => add_image(&image.data, &image.mime_type, text, images),
        ContentBlock::Audio(audio) => note(text, &audio.mime_type, audio.data.len()),
        ContentBlock::Resource(embedded) => match embedded.resource {
            ResourceContents::TextResourceContents { uri, text: of, .. } => {
                line(text, &format!("[{}]", shortened(&uri, SHOWN_BYTES)));
                line(text, &of);
            }
            ResourceContents::BlobResourceContents {
                mime_type, blob, ..
            } => {
                add_image(&blob, &mime_type.unwrap_or_default(), text, images);
            }
            _ => line(text, "[a resource of a kind that is not known here]"),
        },
        ContentBlock::ResourceLink(link) => {
            let name = link.title.as_deref().unwrap_or(&link.name);
            let uri = shortened(&link.uri, SHOWN_BYTES);
            line(text, &format!("[{}: {uri}]", shortened(name, SHOWN_BYTES)));
        }
        _ => line(text, "[content of a kind that is not known here]"),
    }
}

/// Takes in an image; what is none, or too much, is noted.
fn add_image(data: &str, kind: &str, text: &mut String, images: &mut Vec<ToolImage>) {
    let fits = data.len() <= MAX_IMAGE_BYTES / 3 * 4 + 4 && kind.starts_with("image/");
    if images.len() < MAX_IMAGES
        && fits
        && let Ok(bytes) = STANDARD.decode(data)
    {
        images.push(ToolImage {
            media_type: kind.to_owned(),
            bytes,
        });
        line(text, "[1 image here]");
    } else {
        note(text, kind, data.len());
    }
}

/// What the model cannot be shown.
fn note(text: &mut String, kind: &str, base64_bytes: usize) {
    let kind = if kind.is_empty() { "data" } else { kind };
    let size = human_size((base64_bytes / 4 * 3) as u64);
    line(
        text,
        &format!("[{}, {size}, not shown]", shortened(kind, SHOWN_BYTES)),
    );
}

fn line(text: &mut String, more: &str) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(more);
}
