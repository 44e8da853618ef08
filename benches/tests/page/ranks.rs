//! The order by rank: does the page have the host's numbers, and draw them?

use serde_json::{Value, json};
use tilewise_explorer::ranks::{HEAD, MOST_RANKS, PER_STEP};
use tilewise_explorer::{Ranks, ranks};

use crate::browser::Browser;
use crate::tests::{figure, numbers};

/// What the page's module says of the ranks, as the host's numbers.
fn rank_numbers(browser: &mut Browser, query: &Value) -> Option<Vec<f64>> {
    let answer = browser.evaluate(&format!(
        "(() => {{
            const order = tilewise.ranks({query});
            if (!order) return null;
            const {{ chunks, seconds, alone, steps }} = order;
            const step = ({{ rank, isCopy, owner, begin, end, first, last }}) =>
                [rank, isCopy ? 1 : 0, owner, begin, end, first, last];
            return [chunks, steps.length, seconds, alone, ...steps.flatMap(step)];
        }})()"
    ));
    (!answer.is_null()).then(|| numbers(&answer))
}

/// The same layers to the page and to the host: equal to the last bit.
pub fn same_numbers(browser: &mut Browser) {
    for (operation, count) in (0..3).flat_map(|operation| [1, 2, 4, 8].map(|c| (operation, c))) {
        for (chunks, [m, n, k]) in [(0, [8192; 3]), (1, [4095, 333, 1000]), (3, [100, 64, 1])] {
            let asked = Ranks::new(operation, [m, n, k], count, chunks).unwrap();
            let query = json!({
                "operation": operation, "m": m, "n": n, "k": k, "ranks": count, "chunks": chunks,
            });
            assert_eq!(
                rank_numbers(browser, &query),
                Some(ranks(&asked)),
                "{query}"
            );
        }
    }
    let large = json!({
        "operation": 0, "m": 1, "n": 1, "k": 1, "ranks": MOST_RANKS + 1, "chunks": 1,
    });
    assert_eq!(rank_numbers(browser, &large), None);
}

/// Every step is a bar in the time that the host says, and every product of the chosen rank a
/// row of the map.
pub fn pictures(browser: &mut Browser) {
    let set = |browser: &mut Browser, id: &str, value: &str| {
        browser.evaluate(&format!(
            "{{ const control = document.getElementById('{id}'); control.value = '{value}';
                control.dispatchEvent(new Event('change')); }}"
        ));
    };
    let count = |selector: &str| format!("document.querySelectorAll('{selector}').length");
    // As the page opens: an all-gather of four ranks, in the chunks of the estimate.
    let expect = |browser: &mut Browser, asked: Ranks, rank: f64| {
        let host = ranks(&asked);
        let steps: Vec<_> = host[HEAD..].chunks(PER_STEP).collect();
        let products = steps.iter().filter(|step| step[..2] == [rank, 0.0]).count();
        browser.wait_for(&format!(
            "{} === {} && {} === {products}",
            count("#rank-times rect.step"),
            steps.len(),
            count("#rank-map rect.chunk"),
        ));
        let copies = steps.iter().filter(|step| step[1] == 1.0).count();
        assert_eq!(browser.evaluate(&count("#rank-times rect.copy")), copies);
        assert_eq!(figure(browser, "rank_chunks"), host[0]);
        assert_eq!(figure(browser, "rank_seconds"), host[2]);
        assert_eq!(figure(browser, "rank_alone"), host[3]);
    };
    expect(browser, Ranks::new(0, [8192; 3], 4, 0).unwrap(), 0.0);
    set(browser, "map-rank", "3");
    set(browser, "operation", "1");
    set(browser, "chunks", "2");
    expect(browser, Ranks::new(1, [8192; 3], 4, 2).unwrap(), 3.0);
    let first = browser.evaluate("document.querySelector('#rank-map title').textContent");
    // The rows of rank 2 start on rank 3.
    let first = first.as_str().expect("a text");
    assert!(
        first.starts_with("rows 4\u{202f}096 to 5\u{202f}119: 0 to "),
        "{first}"
    );
    // A rank that is not there any more is not chosen any more.
    set(browser, "rank-count", "2");
    expect(browser, Ranks::new(1, [8192; 3], 2, 2).unwrap(), 1.0);
    // What is refused leaves the picture as it is, and says so.
    set(browser, "layer-m", "0");
    let refusal = "document.getElementById('ranks-refused').textContent";
    assert_ne!(browser.evaluate(refusal), "");
    set(browser, "layer-m", "4096");
    assert_eq!(browser.evaluate(refusal), "");
    let said = browser.evaluate("document.querySelector('#ranks > p').textContent");
    let said = said.as_str().expect("a text");
    assert!(said.contains("nothing here was measured"), "{said}");
}
