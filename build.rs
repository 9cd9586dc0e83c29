//! Lays out the page as it is served: `index.html`, and all else below a folder whose name is
//! made of what is in it, so that a browser may keep it for good; each beside itself compressed.

use std::error::Error;
use std::io::Write as _;
use std::path::Path;
use std::{env, fs, io};

use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest as _, Sha256};

const SOURCE: &str = "web/dist";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={SOURCE}");
    let mut files = Vec::new();
    for entry in fs::read_dir(SOURCE)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        files.push((name.ok_or("a file's name")?.to_owned(), fs::read(&path)?));
    }
    files.sort_unstable();
    let mut all = Sha256::new();
    for (name, content) in &files {
        all.update(name);
        all.update(content);
    }
    let build = hex::encode(&all.finalize()[..8]);
    let page = Path::new(&env::var("OUT_DIR")?).join("page");
    let named = page.join("web").join(&build);
    if page.exists() {
        fs::remove_dir_all(&page)?;
    }
    fs::create_dir_all(&named)?;
    for (name, content) in files {
        if name == "index.html" {
            let html = String::from_utf8(content)?.replace("{build}", &build);
            write(&page.join(name), html.as_bytes())?;
        } else {
            write(&named.join(name), &content)?;
        }
    }
    Ok(())
}

fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    fs::write(path, content)?;
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    gzip.write_all(content)?;
    fs::write(path.with_added_extension("gz"), gzip.finish()?)
}
