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
    let mut output = ToolOutput::default();
    for block in answer.content {
        add(block, &mut output);
    }
    let text = &mut output.text;
    // The same as the text, as a rule, and for programs.
    if let Some(structured) = answer.structured_content
        && text.trim().is_empty()
    {
        *text = format!("{structured:#}");
    }
    text.truncate(text.trim_end().len());
    *text = bounded(std::mem::take(text), &context.workspace, &context.call_id);
    if answer.is_error == Some(true) {
        if text.is_empty() {
            text.push_str("the server says no more than that");
        }
        return Err(ToolError(output.text));
    }
    if text.is_empty() && output.images.is_empty() {
        text.push_str("(it gave back nothing)");
    }
    Ok(output)
}

fn add(block: ContentBlock, to: &mut ToolOutput) {
    match block {
        ContentBlock::Text(block) => line(to, &block.text),
        ContentBlock::Image(image) => add_image(&image.data, &image.mime_type, to),
        ContentBlock::Audio(audio) => note(to, &audio.mime_type, audio.data.len()),
        ContentBlock::Resource(embedded) => match embedded.resource {
            ResourceContents::TextResourceContents { uri, text, .. } => {
                line(to, &format!("[{}]", shortened(&uri, SHOWN_BYTES)));
                line(to, &text);
            }
            ResourceContents::BlobResourceContents {
                mime_type, blob, ..
            } => add_image(&blob, &mime_type.unwrap_or_default(), to),
            _ => line(to, "[a resource of a kind that is not known here]"),
        },
        ContentBlock::ResourceLink(link) => {
            let name = link.title.as_deref().unwrap_or(&link.name);
            let uri = shortened(&link.uri, SHOWN_BYTES);
            line(to, &format!("[{}: {uri}]", shortened(name, SHOWN_BYTES)));
        }
        _ => line(to, "[content of a kind that is not known here]"),
    }
}

/// Takes in an image; what is none, or too much, is noted.
fn add_image(data: &str, kind: &str, to: &mut ToolOutput) {
    let fits = data.len() <= MAX_IMAGE_BYTES / 3 * 4 + 4 && kind.starts_with("image/");
    if to.images.len() < MAX_IMAGES
        && fits
        && let Ok(bytes) = STANDARD.decode(data)
    {
        let media_type = kind.to_owned();
        to.images.push(ToolImage { media_type, bytes });
        line(to, "[1 image here]");
    } else {
        note(to, kind, data.len());
    }
}

/// What the model cannot be shown.
fn note(to: &mut ToolOutput, kind: &str, base64_bytes: usize) {
    let kind = if kind.is_empty() { "data" } else { kind };
    let (kind, size) = (
        shortened(kind, SHOWN_BYTES),
        human_size((base64_bytes / 4 * 3) as u64),
    );
    line(to, &format!("[{kind}, {size}, not shown]"));
}

fn line(to: &mut ToolOutput, more: &str) {
    if !to.text.is_empty() && !to.text.ends_with('\n') {
        to.text.push('\n');
    }
    to.text.push_str(more);
}
