//! Images made our own.

use std::io::Cursor;

use image::codecs::jpeg::JpegEncoder;
use image::codecs::png::PngEncoder;
use image::{DynamicImage, ImageDecoder as _, ImageFormat, ImageReader, Limits, Rgb, RgbImage};

use crate::protocol::phrase::{Phrase, PhraseCode};

/// The largest image, as it comes.
pub(super) const MAX_IMAGE_BYTES: usize = 50 * 1024 * 1024;
/// The most pixels: what a camera of today makes. Its decoded form is four bytes a pixel.
const MAX_PIXELS: u64 = 60_000_000;
const MAX_SIDE: u32 = 30_000;
const MAX_MEMORY_BYTES: u64 = 512 * 1024 * 1024;
/// Models scale down what is larger.
const SHOWN_SIDE: u32 = 1568;
/// Beyond this an image without loss is not worth it.
const MAX_PNG_BYTES: usize = 1024 * 1024;
const JPEG_QUALITY: u8 = 85;

/// An image of our own making.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreparedImage {
    /// `image/png` or `image/jpeg`.
    pub media_type: &'static str,
    pub extension: &'static str,
    pub bytes: Vec<u8>,
    /// Of the original, turned upright.
    pub width: u32,
    pub height: u32,
}

/// Why an image cannot be shown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.phrase())]
pub enum ImageError {
    Unsupported,
    TooLarge,
    TooManyPixels { width: u32, height: u32 },
    Damaged,
    TooCostly,
}

impl ImageError {
    /// What is told of it.
    #[must_use]
    pub fn phrase(&self) -> Phrase {
        match self {
            Self::Unsupported => PhraseCode::ImageUnsupported.into(),
            Self::TooLarge => {
                let megabytes = (MAX_IMAGE_BYTES >> 20).to_string();
                Phrase::new(PhraseCode::ImageTooLarge, [("megabytes", megabytes)])
            }
            Self::TooManyPixels { width, height } => Phrase::new(
                PhraseCode::ImageTooManyPixels,
                [
                    ("width", width.to_string()),
                    ("height", height.to_string()),
                    ("millions", (MAX_PIXELS / 1_000_000).to_string()),
                ],
            ),
            Self::Damaged => PhraseCode::ImageDamaged.into(),
            Self::TooCostly => PhraseCode::FileTooCostly.into(),
        }
    }
}

/// Decodes an image within limits, and encodes it anew.
pub(super) fn prepare(bytes: &[u8]) -> Result<PreparedImage, ImageError> {
    if bytes.len() > MAX_IMAGE_BYTES {
        return Err(ImageError::TooLarge);
    }
    let format = format(bytes).ok_or(ImageError::Unsupported)?;
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
    let mut limits = Limits::default();
    limits.max_image_width = Some(MAX_SIDE);
    limits.max_image_height = Some(MAX_SIDE);
    limits.max_alloc = Some(MAX_MEMORY_BYTES);
    reader.limits(limits);
    let mut decoder = reader.into_decoder().map_err(|error| refused(&error))?;
    // What it says of itself, before a pixel is decoded.
    let (width, height) = decoder.dimensions();
    if u64::from(width) * u64::from(height) > MAX_PIXELS {
        return Err(ImageError::TooManyPixels { width, height });
    }
    let orientation = decoder.orientation();
    let mut image = DynamicImage::from_decoder(decoder).map_err(|error| refused(&error))?;
    if image.width() > SHOWN_SIDE || image.height() > SHOWN_SIDE {
        let (full_width, full_height) = (image.width(), image.height());
        image = image.thumbnail(SHOWN_SIDE, SHOWN_SIDE);
        debug_assert!(image.width() <= full_width && image.height() <= full_height);
    }
    let (mut width, mut height) = (width, height);
    if let Ok(orientation) = orientation {
        let upright = (image.width(), image.height());
        image.apply_orientation(orientation);
        if upright != (image.width(), image.height()) {
            std::mem::swap(&mut width, &mut height);
        }
    }
    let encoded = encode(&image, format).ok_or(ImageError::Damaged)?;
    Ok(PreparedImage {
        media_type: encoded.0,
        extension: encoded.1,
        bytes: encoded.2,
        width,
        height,
    })
}

/// Drawings stay sharp where that is not too much; photographs become JPEG.
fn encode(
    image: &DynamicImage,
    from: ImageFormat,
) -> Option<(&'static str, &'static str, Vec<u8>)> {
    let is_drawing = matches!(from, ImageFormat::Png | ImageFormat::Gif | ImageFormat::Bmp)
        || image.color().has_alpha();
    if is_drawing {
        let plain = if image.color().has_alpha() {
            DynamicImage::ImageRgba8(image.to_rgba8())
        } else {
            DynamicImage::ImageRgb8(image.to_rgb8())
        };
        let mut bytes = Vec::new();
        plain.write_with_encoder(PngEncoder::new(&mut bytes)).ok()?;
        if bytes.len() <= MAX_PNG_BYTES {
            return Some(("image/png", "png", bytes));
        }
    }
    let mut bytes = Vec::new();
    let encoder = JpegEncoder::new_with_quality(&mut bytes, JPEG_QUALITY);
    on_white(image).write_with_encoder(encoder).ok()?;
    Some(("image/jpeg", "jpg", bytes))
}

/// Without transparency, as on paper.
fn on_white(image: &DynamicImage) -> RgbImage {
    if !image.color().has_alpha() {
        return image.to_rgb8();
    }
    let image = image.to_rgba8();
    RgbImage::from_fn(image.width(), image.height(), |x, y| {
        let [red, green, blue, alpha] = image.get_pixel(x, y).0;
        let alpha = u16::from(alpha);
        let mix = |channel: u8| {
            let mixed = (u16::from(channel) * alpha + 255 * (255 - alpha)) / 255;
            u8::try_from(mixed).unwrap_or(u8::MAX)
        };
        Rgb([mix(red), mix(green), mix(blue)])
    })
}

fn format(bytes: &[u8]) -> Option<ImageFormat> {
    match infer::get(bytes)?.mime_type() {
        "image/png" => Some(ImageFormat::Png),
        "image/jpeg" => Some(ImageFormat::Jpeg),
        "image/gif" => Some(ImageFormat::Gif),
        "image/webp" => Some(ImageFormat::WebP),
        "image/bmp" => Some(ImageFormat::Bmp),
        _ => None,
    }
}

fn refused(error: &image::ImageError) -> ImageError {
    match error {
        image::ImageError::Limits(_) => ImageError::TooCostly,
        image::ImageError::Unsupported(_) => ImageError::Unsupported,
        _ => ImageError::Damaged,
    }
}
