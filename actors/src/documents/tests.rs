//! Each kind of document and image, honest ones and others.
use bytes::Bytes;
use futures_util::FutureExt as _;
use image::ImageFormat;
use tempfile::TempDir;

use super::fixtures::{docx, jpeg_with_exif, pdf, picture, png_bomb, xlsx, zipped};
use super::sniff::{Class, is_modest, sniffed};
use super::{DocumentError, Examined, ImageError, PreparedImage, examine, image, permit, text_of};

async fn examined(bytes: &[u8], name: &str) -> Examined {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("upload");
    std::fs::write(&path, bytes).unwrap();
    examine(&path, name).await.unwrap()
}

/// Type, extension, text.
async fn seen(bytes: &[u8], name: &str) -> (String, String, Option<String>) {
    let examined = examined(bytes, name).await;
    assert_eq!(examined.problem, None);
    (examined.media_type, examined.extension, examined.text)
}

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

#[tokio::test]
async fn documents_become_text() {
    let docx = docx(
        "<w:p><w:r><w:t>Dear &amp; </w:t><w:t>Олено</w:t></w:r></w:p><w:p/><w:p><w:r><w:t>one</w:t><w:tab/><w:t>&#x41;&evil;</w:t></w:r></w:p><w:instrText>HIDDEN</w:instrText>",
    );
    let (media_type, extension, text) = seen(&docx, "x.exe").await;
    assert!(
        media_type.ends_with("wordprocessingml.document"),
        "{media_type}"
    );
    assert_eq!(
        (extension.as_str(), text),
        ("docx", some("Dear & Олено\n\none\tA"))
    );

    let sheet = xlsx(
        "<row r=\"1\"><c r=\"A1\" t=\"inlineStr\"><is><t>Rent</t></is></c><c r=\"B1\"><v>120.5</v></c></row>",
    );
    let (_, extension, text) = seen(&sheet, "costs.zip").await;
    assert_eq!(
        (extension.as_str(), text),
        ("xlsx", some("## Costs\nRent\t120.5"))
    );
    let sheet = xlsx(
        "<row r=\"1\"><c r=\"A1\" s=\"1\"><v>45306</v></c><c r=\"B1\" s=\"2\"><v>45306.75</v></c><c r=\"C1\" s=\"2\"><v>0.375</v></c><c r=\"D1\" s=\"3\"><v>1.0833333333333333</v></c></row>",
    );
    let (_, _, text) = seen(&sheet, "due.xlsx").await;
    let dates = "## Costs\n2024-01-15\t2024-01-15 18:00\t09:00\t26:00:00";
    assert_eq!(text, some(dates));

    let slide = |text: &str| format!("<p:sld><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:sld>");
    let slides = zipped(&[
        ("ppt/presentation.xml", b"<p/>"),
        ("ppt/slides/slide10.xml", slide("ten").as_bytes()),
        ("ppt/slides/slide2.xml", slide("two").as_bytes()),
    ]);
    let (_, extension, text) = seen(&slides, "").await;
    assert_eq!(
        (extension.as_str(), text),
        ("pptx", some("## Slide 2\ntwo\n\n## Slide 10\nten"))
    );

    let odt = zipped(&[
        ("mimetype", b"application/vnd.oasis.opendocument.text"),
        ("content.xml", "<d><style>no</style><text:h>Заголовок</text:h><text:p>a<text:s/>b<text:span>c</text:span></text:p></d>".as_bytes()),
    ]);
    let (_, extension, text) = seen(&odt, "").await;
    assert_eq!((extension.as_str(), text), ("odt", some("Заголовок\na bc")));

    let pdf = pdf("Hello from a page");
    let found = examined(&pdf, "no-extension").await;
    assert_eq!(found.media_type, "application/pdf");
    assert_eq!(found.text, some("Hello from a page"));
    assert_eq!((found.converted_text, found.text_bytes), (found.text, 17));
}

#[tokio::test]
async fn texts_come_in_any_encoding() {
    let plain = examined("ціни\n".as_bytes(), "a.py").await;
    assert_eq!(
        (plain.extension.as_str(), plain.converted_text),
        ("py", None)
    );
    assert_eq!(
        (plain.media_type.as_str(), plain.text_bytes),
        ("text/plain", 9)
    );

    let (cp1251, _, _) =
        encoding_rs::WINDOWS_1251.encode("Привіт, це звичайний текст про погоду і врожай.");
    let (_, _, text) = seen(&cp1251, "a.txt").await;
    assert_eq!(
        text,
        some("Привіт, це звичайний текст про погоду і врожай.")
    );

    let utf16: Vec<u8> = "\u{feff}Hi Є"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    let found = examined(&utf16, "a.txt").await;
    assert_eq!((found.text.as_deref(), found.text_bytes), (Some("Hi Є"), 5));
    assert_eq!(found.converted_text.as_deref(), Some("Hi Є"));

    let long = "слово ".repeat(40_000);
    let found = examined(long.as_bytes(), "a.txt").await;
    assert_eq!(found.text_bytes, long.len() as u64);
    assert!(found.text.unwrap().len() <= 64 * 1024 && found.converted_text.is_none());
}

#[test]
fn a_file_is_what_is_in_it() {
    let kind = |bytes: &[u8], name: &str| {
        let kind = sniffed(bytes, name);
        (kind.class, kind.media_type, kind.extension)
    };
    let is = |class, media_type: &str, extension: &str| {
        (class, media_type.to_owned(), extension.to_owned())
    };
    let exe = [b"MZ\x90\0\x03\0\0\0".as_slice(), &[0; 300]].concat();
    let portable = "application/vnd.microsoft.portable-executable";
    assert_eq!(kind(&exe, "photo.png"), is(Class::Other, portable, "exe"));
    let elf = [b"\x7fELF\x02\x01\x01\0".as_slice(), &[0; 300]].concat();
    assert_eq!(kind(&elf, "a.png").0, Class::Other);
    for (text, name, media_type) in [
        ("<!DOCTYPE html><script>1</script>", "a.png", "text/html"),
        (" \n<HTML>", "a.txt", "text/html"),
        ("<script>alert(1)</script>", "a.html", "text/html"),
        (
            "<?xml version=\"1.0\"?><svg onload=\"x\"/>",
            "a.jpg",
            "image/svg+xml",
        ),
        ("<svg xmlns=\"x\">", "a", "image/svg+xml"),
        ("<?xml version=\"1.0\"?><a/>", "a.txt", "application/xml"),
        ("a,b\n", "a.csv", "text/csv"),
        ("BM is how this text begins", "a", "text/plain"),
    ] {
        let found = kind(text.as_bytes(), name);
        assert_eq!(
            (found.0, found.1.as_str()),
            (Class::Text, media_type),
            "{text}"
        );
    }
    let noise: Vec<u8> = (0..4096_u32)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect();
    assert_eq!(
        kind(&noise, "a.txt"),
        is(Class::Other, "application/octet-stream", "bin")
    );
    let png = picture(4, 4, ImageFormat::Png);
    assert_eq!(kind(&png, "a.txt"), is(Class::Image, "image/png", "png"));
}

#[tokio::test]
async fn images_are_made_anew() {
    let prepared = image(jpeg_with_exif(3200, 1600)).await.unwrap();
    let PreparedImage {
        media_type,
        extension,
        bytes,
        width,
        height,
    } = prepared;
    assert_eq!((media_type, extension), ("image/jpeg", "jpg"));
    assert_eq!((width, height), (1600, 3200), "turned upright");
    let gone = |needle: &[u8]| !bytes.windows(needle.len()).any(|window| window == needle);
    assert!(
        gone(b"50.4501") && gone(b"Exif"),
        "nothing of the sender's is left"
    );
    let again = image::load_from_memory(&bytes).unwrap();
    assert_eq!((again.width(), again.height()), (784, 1568));

    for format in [
        ImageFormat::Png,
        ImageFormat::Gif,
        ImageFormat::Bmp,
        ImageFormat::WebP,
    ] {
        let prepared = image(picture(20, 10, format)).await.unwrap();
        assert_eq!((prepared.width, prepared.height), (20, 10), "{format:?}");
    }
    let with_tail = [
        picture(20, 10, ImageFormat::Png),
        b"<script>alert(1)</script>".to_vec(),
    ]
    .concat();
    let prepared = image(with_tail).await.unwrap();
    assert!(!prepared.bytes.windows(7).any(|window| window == b"<script"));
}

#[tokio::test]
async fn image_bombs_are_refused_before_they_are_decoded() {
    for (width, height) in [(60_000, 60_000), (u32::MAX >> 1, 1), (20_000, 20_000)] {
        let refused = image(png_bomb(width, height)).await.unwrap_err();
        let costly = matches!(
            refused,
            ImageError::TooManyPixels { .. } | ImageError::TooCostly
        );
        assert!(
            costly || refused == ImageError::Damaged,
            "{width}×{height}: {refused:?}"
        );
    }
    let error = image(png_bomb(20_000, 20_000)).await.unwrap_err();
    assert_eq!(
        error,
        ImageError::TooManyPixels {
            width: 20_000,
            height: 20_000
        }
    );
    let png = picture(300, 300, ImageFormat::Png);
    assert_eq!(
        image(png[..png.len() / 2].to_vec()).await,
        Err(ImageError::Damaged)
    );
    assert_eq!(
        image(b"<svg/>".to_vec()).await,
        Err(ImageError::Unsupported)
    );
    let found = examined(&png_bomb(20_000, 20_000), "a.png").await;
    let problem = found.problem.unwrap().to_string();
    assert!(found.image.is_none() && problem.contains("20000×20000 pixels"));
}

#[tokio::test]
async fn bombs_and_broken_documents_are_refused_in_time() {
    let zeros = vec![b' '; 600 << 20];
    let body = [b"<w><w:t>".as_slice(), &zeros, b"</w:t></w>"].concat();
    drop(zeros);
    let bomb = zipped(&[("word/document.xml", &body)]);
    assert!(bomb.len() < 4 << 20);
    let found = examined(&bomb, "a.docx").await;
    assert_eq!(found.text, None, "{:?}", found.problem);
    let bomb = zipped(&[("xl/workbook.xml", &body)]);
    drop(body);
    let found = examined(&bomb, "a.xlsx").await;
    assert_eq!(found.problem, Some(DocumentError::Bomb.phrase()));

    let whole = docx("<w:p><w:t>text</w:t></w:p>");
    let cut = &whole[..whole.len() * 3 / 4];
    // Without its directory an archive is nothing that we know.
    assert_eq!(examined(cut, "a.docx").await.media_type, "application/zip");
    for (bytes, media_type) in [
        (b"%PDF-1.4\ngarbage".to_vec(), "application/pdf"),
        (pdf("x")[..200].to_vec(), "application/pdf"),
        (b"PK\x03\x04".to_vec(), super::sheets::XLSX),
        (Vec::new(), super::office::DOCX),
    ] {
        let error = text_of(Bytes::from(bytes), media_type).await.unwrap_err();
        assert!(
            matches!(error, DocumentError::Damaged(_) | DocumentError::NoText),
            "{error:?}"
        );
    }
    let empty = text_of(Bytes::from(docx("<w:p/>")), super::office::DOCX).await;
    assert_eq!(empty, Err(DocumentError::NoText));
    let unknown = text_of(Bytes::new(), "video/mp4").await;
    assert_eq!(
        unknown,
        Err(DocumentError::Unsupported("video/mp4".to_owned()))
    );
}

#[tokio::test]
async fn an_archive_of_too_many_files_is_not_parsed() {
    let honest = docx("<w:p/>");
    assert!(is_modest(&honest));
    let many = [honest.clone(), b"PK\x01\x02".repeat(20_000)].concat();
    assert!(!is_modest(&many));
    assert_eq!(
        examined(&many, "a.docx").await.media_type,
        "application/zip"
    );
    let record = |count: u64| {
        let count = count.to_le_bytes();
        [&b"PK\x06\x06"[..], &[0; 20], &count, &count, b"PK\x06\x07"].concat()
    };
    assert!(is_modest(&[honest.clone(), record(3)].concat()));
    assert!(!is_modest(&[honest, record(1 << 40)].concat()));
}

#[tokio::test]
async fn only_so_many_are_read_at_once() {
    let held = (permit().await, permit().await);
    let mut reading = Box::pin(text_of(Bytes::from_static(b"hello"), "text/plain"));
    assert!((&mut reading).now_or_never().is_none());
    drop(held);
    assert_eq!(reading.await.unwrap(), "hello");
}
