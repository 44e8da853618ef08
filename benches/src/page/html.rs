//! The HTML page: an explorer of tile orders, the order by rank of several GPUs, the study's
//! measurements, the sweep's outcomes and the benchmark's records, in one file that needs no
//! network.
//!
//! The sources are in `benches/page/`: HTML, a style sheet and plain JavaScript, small files
//! that are joined here, without a bundler. The page's computations are the crate
//! `tilewise-explorer`, compiled to WebAssembly by this package's build script and embedded
//! like the rest, so that the program writes the page wherever it runs.

use crate::atomic_file;
use crate::error::Error;
use crate::page::data::PageData;
use crate::records::record::Record;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use std::path::Path;

include!(concat!(env!("OUT_DIR"), "/explorer.rs"));

const HTML: &str = include_str!("../../page/index.html");
const STYLE: &str = include_str!("../../page/style.css");

/// The scripts, joined into one in this order: each uses only those before it.
const SCRIPTS: [&str; 17] = [
    include_str!("../../page/js/dom.js"),
    include_str!("../../page/js/format.js"),
    include_str!("../../page/js/model.js"),
    include_str!("../../page/js/prediction.js"),
    include_str!("../../page/js/theme.js"),
    include_str!("../../page/js/grid.js"),
    include_str!("../../page/js/controls.js"),
    include_str!("../../page/js/player.js"),
    include_str!("../../page/js/explorer.js"),
    include_str!("../../page/js/chart.js"),
    include_str!("../../page/js/ranks.js"),
    include_str!("../../page/js/study.js"),
    include_str!("../../page/js/regret.js"),
    include_str!("../../page/js/roofline.js"),
    include_str!("../../page/js/sweep.js"),
    include_str!("../../page/js/bench.js"),
    include_str!("../../page/js/main.js"),
];

/// Writes a page with the records of this run.
///
/// # Errors
/// As [`write()`].
pub fn write_records(records: &[Record], path: &Path) -> Result<(), Error> {
    write(&PageData::default().with_records(records.to_vec()), path)
}

/// Writes the page.
///
/// # Errors
/// The file cannot be written, or this build has no WebAssembly.
pub fn write(page: &PageData, path: &Path) -> Result<(), Error> {
    let text = render(page, path)?;
    atomic_file::write(path, text.as_bytes())
}

/// The WebAssembly module, for the page at `path`. A long run asks for it first, so as not
/// to fail at its end.
///
/// # Errors
/// This build has none.
pub fn module(path: &Path) -> Result<&'static [u8], Error> {
    EXPLORER.map_err(|reason| Error::File {
        path: path.to_owned(),
        reason: format!(
            "the page computes in WebAssembly, and this program was built without: {reason}"
        ),
    })
}

/// The page's text; an error names `path`.
fn render(page: &PageData, path: &Path) -> Result<String, Error> {
    let wasm = module(path)?;
    let data = serde_json::to_string(page).map_err(Error::Json)?;
    // Inside a script element, `</script` or `<!--` in a text would end or hide the rest.
    let data = data.replace('<', "\\u003c");
    Ok(substitute(
        HTML,
        &[
            ("style", STYLE),
            ("data", &data),
            ("wasm", &BASE64_STANDARD.encode(wasm)),
            ("script", &SCRIPTS.join("\n")),
        ],
    ))
}

/// `text` with each `{{name}}` replaced. Values are not searched for names in turn.
fn substitute(text: &str, values: &[(&str, &str)]) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        let (name, after) = after.split_once("}}").expect("the page closes its braces");
        let (_, value) = values
            .iter()
            .find(|(known, _)| *known == name)
            .expect("the page names what there is");
        result += before;
        result += value;
        rest = after;
    }
    result + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::record::tests::sample;

    #[test]
    fn what_is_put_in_is_not_read_as_the_page() {
        let text = substitute("<{{a}}|{{b}}>", &[("a", "{{b}}"), ("b", "2")]);
        assert_eq!(text, "<{{b}}|2>");
    }

    #[test]
    fn the_page_is_one_file_whatever_the_data_say() {
        let mut record = sample("tilewise", "row", 0.5);
        record.note = "</script><!-- & {{data}}".to_owned();
        let page = PageData::default().with_records(vec![record]);
        let text = match render(&page, Path::new("page.html")) {
            Ok(text) => text,
            Err(error) => {
                // A build without WebAssembly says what to install, and that is all.
                assert!(EXPLORER.is_err(), "{error}");
                assert!(error.to_string().contains("page.html"), "{error}");
                return;
            }
        };
        assert!(text.contains(r"\u003c/script>\u003c!-- & {{data}}"));
        assert_eq!(text.matches("</script>").count(), 3);
        for external in ["src=\"", "@import", "url("] {
            assert!(!text.contains(external), "{external}");
        }
        assert!(text.len() < 3 << 20, "{} bytes", text.len());
    }
}
