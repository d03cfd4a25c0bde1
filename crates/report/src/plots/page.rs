//! Drawings on a page that needs nothing else: no network, no script. Light and dark as the reader has it; a pointer over a shape says what it is.

use super::drawing::Drawing;
use super::svg::{picture, rules, safe};
use std::fmt::Write;

pub fn file(title: &str, drawings: &[Drawing]) -> String {
    let light = rules("svg ", |ink| ink.colours().0);
    let dark = rules("svg ", |ink| ink.colours().1);
    let title = safe(&super::drawing::named(title));
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">\n<link rel=\"icon\" href=\"data:,\">\n<title>{title}</title>\n<style>\
         :root{{color-scheme:light dark}}body{{margin:0;background:#f6f7fa;color:#172033;font:15px/1.5 system-ui,-apple-system,'Segoe UI',sans-serif}}\
         main{{max-width:1280px;margin:0 auto;padding:20px}}h1{{font-size:17px;overflow-wrap:anywhere}}figure{{margin:0 0 18px;border:1px solid #e3e7ef;border-radius:12px;overflow:hidden;background:#fff}}\
         svg{{display:block;width:100%;height:auto}}svg [class]:has(title):hover{{opacity:.7}}{light}\
         @media(prefers-color-scheme:dark){{body{{background:#0e1220;color:#e7ebf5}}figure{{border-color:#2a3246;background:#161c2e}}{dark}}}</style></head>\n<body><main><h1>{title}</h1>\n"
    );
    for drawing in drawings {
        let _ = write!(out, "<figure>{}</figure>", picture(drawing, ""));
    }
    out.push_str("\n</main></body></html>\n");
    out
}
