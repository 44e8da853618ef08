//! The tests.

use serde_json::{Value, json};
use tilewise::l2::gpu::GPUS;
use tilewise_explorer::{FIGURES, Query, figures, tiles, waves};

use crate::browser::Browser;
use crate::ranks;
use crate::sample::{KERNEL, ORDERS, PRODUCTS};

/// A test and its name.
type Test = (&'static str, fn(&mut Browser));

/// All of them.
pub const TESTS: &[Test] = &[
    ("the tutorial's example", tutorial),
    ("a slider moves the figures", slider),
    ("WebAssembly computes what the host does", same_code),
    ("too large a product is refused in words", too_large),
    ("waves by keyboard", player),
    ("little moves where that is preferred", calm),
    (
        "each rank's steps are those of the host",
        ranks::same_numbers,
    ),
    ("the order by rank is drawn", ranks::pictures),
    ("the study is drawn", study),
    ("the sweep is drawn", sweep),
    ("the benchmark's bars are what the legend says", bench),
    ("a line compares both orders", comparison),
    ("light and dark", theme),
    ("on a phone, with a name for every control", phone),
];

/// Waits until the figures are those of the controls.
pub fn settle(browser: &mut Browser) {
    browser.wait_for("document.getElementById('explorer').getAttribute('aria-busy') === 'false'");
}

/// A figure of the explorer, with all its digits.
pub fn figure(browser: &mut Browser, name: &str) -> f64 {
    let value = browser.evaluate(&format!(
        "document.querySelector('[data-figure={name}]').dataset.value"
    ));
    let text = value.as_str().expect("the figure is shown");
    text.parse().expect("the figure is a number")
}

/// 9×9 tiles, 9 k-blocks deep, on 9 SMs: 162 blocks without a cache, 90 in row-major
/// order, 54 in groups of 3.
fn tutorial(browser: &mut Browser) {
    browser.press("#example", "Enter", 13);
    settle(browser);
    for (name, blocks) in [
        ("blocks_uncached", 162.0),
        ("blocks_row_major", 90.0),
        ("blocks", 54.0),
    ] {
        assert_eq!(figure(browser, name), blocks, "{name}");
    }
    let text = browser.evaluate("document.getElementById('wave-text').textContent");
    assert!(
        text.as_str().is_some_and(|text| text.contains("9×9 tiles")),
        "{text}"
    );
}

/// One step of the group's slider, by an arrow key.
fn slider(browser: &mut Browser) {
    let start = |group: u32| {
        let order = format!("grouped:{group}");
        Query::new([4096, 8192, 4096], [128, 256, 64], 2, &order, 0, 132).unwrap()
    };
    let check = |browser: &mut Browser, group: u32| {
        let expected = figures(&start(group));
        for (name, expected) in FIGURES.iter().zip(expected) {
            assert_eq!(figure(browser, name), expected, "group {group}: {name}");
        }
        expected
    };
    let before = check(browser, 8);
    browser.press("#group-slider", "ArrowRight", 39);
    settle(browser);
    assert_eq!(
        browser.evaluate("document.getElementById('group').value"),
        "9"
    );
    let after = check(browser, 9);
    assert_ne!(before, after);
}

/// The same questions to the page and to the host: equal to the last bit.
fn same_code(browser: &mut Browser) {
    let shapes = [[1, 1, 1], [4095, 4097, 129], [8192, 2048, 512]];
    let blocks = [[128, 256, 64], [64, 192, 32]];
    let mut orders: Vec<String> = Vec::new();
    for size in [1, 3, 8] {
        orders.extend(gpu_kernels::TileOrder::all(size).map(|order| order.to_string()));
    }
    let mut asked = 0;
    for (shape, block) in shapes.into_iter().flat_map(|s| blocks.map(|b| (s, b))) {
        for (at, order) in orders.iter().enumerate() {
            let (gpu, sms) = ((at % GPUS.len()) as u32, [132, 7][at % 2]);
            let query = Query::new(shape, block, 2, order, gpu, sms).unwrap();
            let answer = ask(browser, shape, block, order, gpu, sms);
            let case = format!("{shape:?} {block:?} {order} on {sms} SMs of {gpu}");
            assert_eq!(answer["tiles"], json!(tiles(&query)), "{case}");
            assert_eq!(numbers(&answer["waves"]), waves(&query), "{case}");
            assert_eq!(numbers(&answer["figures"]), figures(&query), "{case}");
            asked += 1;
        }
    }
    assert_eq!(asked, 6 * 24);
    for order in [
        "zigzag",
        "grouped:0",
        "grouped",
        "a name of more than thirty-two bytes",
    ] {
        let answer = ask(browser, [512; 3], [128; 3], order, 0, 132);
        assert!(answer["tiles"].is_null(), "{order}: {answer}");
    }
}

/// What the page's module answers: tiles, waves and figures, each a list of numbers.
fn ask(
    browser: &mut Browser,
    [m, n, k]: [u32; 3],
    [block_m, block_n, block_k]: [u32; 3],
    order: &str,
    gpu: u32,
    sms: u32,
) -> Value {
    let query = json!({
        "m": m, "n": n, "k": k, "blockM": block_m, "blockN": block_n, "blockK": block_k,
        "elementBytes": 2, "order": order, "gpu": gpu, "sms": sms,
    });
    browser.evaluate(&format!(
        "(() => {{
            const query = {query};
            const tiles = tilewise.tiles(query);
            if (!tiles) return {{ tiles }};
            const waves = tilewise.waves(query);
            return {{
                tiles: [...tiles],
                waves: waves.flatMap(({{ tiles, uncached, a, b }}) => [tiles, uncached, a, b]),
                figures: Object.values(tilewise.predict(query)),
            }};
        }})()"
    ))
}

/// A list of numbers, which JSON may write as integers.
pub fn numbers(value: &Value) -> Vec<f64> {
    let list = value.as_array().expect("a list");
    list.iter().map(|n| n.as_f64().expect("a number")).collect()
}

/// The fields take more than can be drawn; a smaller product is answered again.
fn too_large(browser: &mut Browser) {
    let set = |id: &str, value: &str| {
        format!(
            "{{ const control = document.getElementById('{id}'); control.value = '{value}';
                for (const kind of ['input', 'change']) control.dispatchEvent(new Event(kind)); }}"
        )
    };
    let refusal = "document.getElementById('refused').textContent";
    assert_eq!(browser.evaluate(refusal), "");
    let large = [("tile", "64x64"), ("m", "65536"), ("n", "65536")];
    browser.evaluate(&large.map(|(id, value)| set(id, value)).concat());
    let text = browser.evaluate(refusal);
    assert!(
        text.as_str()
            .is_some_and(|text| text.contains("larger tiles")),
        "{text}"
    );
    browser.evaluate(
        &[("m", "512"), ("n", "512")]
            .map(|(id, value)| set(id, value))
            .concat(),
    );
    settle(browser);
    assert_eq!(browser.evaluate(refusal), "");
    assert_eq!(figure(browser, "dram_write_bytes"), 512.0 * 512.0 * 2.0);
}

/// Steps with the buttons and the slider; nothing moves unasked.
fn player(browser: &mut Browser) {
    let label = "document.getElementById('wave-number').textContent";
    let expect = |browser: &mut Browser, wave: &str| {
        assert_eq!(browser.evaluate(label), format!("wave {wave} of 8"));
    };
    expect(browser, "1");
    browser.press("#forward", "Enter", 13);
    expect(browser, "2");
    browser.press("#wave", "End", 35);
    expect(browser, "8");
    // 1024 tiles on 132 SMs leave 100 for the last wave.
    let text = browser.evaluate("document.getElementById('wave-text').textContent");
    assert!(
        text.as_str().is_some_and(|text| text.contains("100 tiles")),
        "{text}"
    );
    browser.press("#play", "Enter", 13);
    browser.wait_for(&format!(
        "{label} !== 'wave 8 of 8' && {label} !== 'wave 1 of 8'"
    ));
    browser.wait_for("document.getElementById('play').textContent === 'Play'");
    expect(browser, "8");
}

/// Who prefers reduced motion gets a wave a second.
fn calm(browser: &mut Browser) {
    let reduced = json!([{"name": "prefers-reduced-motion", "value": "reduce"}]);
    browser.call("Emulation.setEmulatedMedia", json!({"features": reduced}));
    browser.evaluate("window.pressed = performance.now()");
    browser.press("#play", "Enter", 13);
    browser.wait_for("document.getElementById('wave').value === '2'");
    let waited = browser.evaluate("performance.now() - pressed");
    assert!(waited.as_f64() >= Some(1000.0), "{waited} ms");
}

/// Every row is a point; the lists and tables have every order.
fn study(browser: &mut Browser) {
    assert_eq!(
        browser.evaluate("document.getElementById('study').hidden"),
        false
    );
    let charts = browser.evaluate(
        "[...document.querySelectorAll('#study svg')].map((svg) =>
            [svg.getAttribute('aria-label'), svg.querySelectorAll('circle').length,
             svg.querySelectorAll('rect').length])",
    );
    let points = PRODUCTS.len() * ORDERS.len();
    let bars = 2 * ORDERS.len();
    assert_eq!(
        charts,
        json!([
            ["Bytes read from DRAM", points, 0],
            ["Time", 0, bars],
            ["Read from DRAM", 0, bars],
            ["Roofline", points, 0],
        ])
    );
    let hollow = browser.evaluate("document.querySelectorAll('#study circle.hollow').length");
    // On the smaller product the model was fitted.
    assert_eq!(hollow, ORDERS.len());
    // The chooser picks the fastest on one product and one that takes 10 % longer on
    // the other.
    let regret = browser.evaluate(
        "[...document.querySelectorAll('#study details')]
            .find((details) => details.textContent.includes('time lost')).querySelector('tbody tr').textContent",
    );
    assert!(
        regret
            .as_str()
            .is_some_and(|row| row.starts_with("the library's choice25.00\u{a0}%10.0\u{a0}%")),
        "{regret}"
    );
}

/// The list begins with the problems that are held out, and each list shows its own.
fn sweep(browser: &mut Browser) {
    assert_eq!(
        browser.evaluate("document.getElementById('sweep').hidden"),
        false
    );
    let charts = "[...document.querySelectorAll('#sweep svg')].map((svg) =>
        [svg.getAttribute('aria-label'),
         [...svg.querySelectorAll('circle title')].map((title) => title.textContent)])";
    let first = browser.evaluate(charts);
    let speedups = &first[0][1];
    assert_eq!(first[0][0], "Speedup over cuBLASLt");
    // The fastest kernel is at 4 × cuBLASLt, the choice at 2.
    assert!(
        speedups[0]
            .as_str()
            .is_some_and(|text| text.contains("4.00")),
        "{first}"
    );
    assert!(
        speedups[1]
            .as_str()
            .is_some_and(|text| text.contains("2.00")),
        "{first}"
    );
    assert!(
        first[1][1][0]
            .as_str()
            .is_some_and(|text| text.contains("100\u{a0}%")),
        "{first}"
    );
    browser.evaluate(
        "{ const list = document.querySelector('#sweep select');
           list.value = 'cold, all'; list.dispatchEvent(new Event('change')); }",
    );
    browser.wait_for("document.querySelectorAll('#sweep svg circle').length === 6");
    let held_out = browser.evaluate(
        "[...document.querySelectorAll('#sweep tbody tr')].map((row) => row.textContent)
            .find((text) => text.startsWith('cold, held out'))",
    );
    assert_eq!(
        held_out,
        "cold, held out12.002.002.002.002.002.004.004.004.00"
    );
}

/// Row-major order, the library's choice and the peers have a bar each in both regimes, of
/// the length that their figures say, in the colours of a legend that says what each is.
fn bench(browser: &mut Browser) {
    let charts = browser.evaluate(
        "[...document.querySelectorAll('#bench .chart')].map((chart) => ({
            bars: [...chart.querySelectorAll('rect')].map((bar) =>
                [bar.querySelector('title').textContent, bar.getAttribute('fill'), Number(bar.getAttribute('width'))]),
            labels: [...chart.querySelectorAll('rect + text')].map((label) => label.textContent),
            legend: [...chart.querySelectorAll('.legend span')].map((entry) =>
                [entry.textContent, entry.querySelector('i').style.getPropertyValue('--swatch')]),
        }))",
    );
    let charts = charts.as_array().expect("a list");
    assert_eq!(charts.len(), 2);
    let cold = ["row", "groupedn:8", "cuBLASLt", "Triton"].into_iter();
    let regimes = [[15.0, 12.5, 12.5, 16.0], [21.0, 15.0, 16.0, 20.0]];
    for (chart, milliseconds) in charts.iter().zip(regimes) {
        let bars = chart["bars"].as_array().expect("a list");
        assert_eq!(bars.len(), 4, "{chart}");
        let longest = bars[1][2].as_f64().expect("a number");
        let named = cold.clone().zip(milliseconds).zip(bars);
        for (at, ((name, time), bar)) in named.enumerate() {
            let title = bar[0].as_str().expect("a text");
            let tflops = 2.0 * 16384_f64.powi(3) / time / 1e9;
            assert!(title.contains(name), "{title}");
            assert!(
                title.ends_with(&format!(": {tflops:.0} TFLOP/s")),
                "{title}"
            );
            let length = bar[2].as_f64().expect("a number");
            let expected = longest * milliseconds[1] / time;
            assert!((length - expected).abs() < 1e-6, "{length}: {chart}");
            // Nobody has to look for a bar's colour in the legend.
            let label = chart["labels"][at].as_str().expect("a text");
            let short = if name == "row" { "row-major" } else { name };
            assert_eq!(label.split_once(' ').expect("two words").1, short);
            let entry = &chart["legend"][at];
            assert_eq!(bar[1], entry[1], "{chart}");
            assert_eq!(entry[1], format!("var(--series-{at})"));
        }
        let legend = |at: usize| chart["legend"][at][0].as_str().expect("a text");
        assert!(
            legend(0).contains("row-major order: the same kernel"),
            "{chart}"
        );
        assert!(legend(1).contains("the library’s choice"), "{chart}");
        assert!(legend(2).contains("cuBLASLt 13.1, the best of"), "{chart}");
        assert!(legend(3).contains("in its own process"), "{chart}");
    }
    let implementations = browser.evaluate(
        "[...document.querySelectorAll('#bench details tbody tr')].map((row) => row.cells[1].textContent)",
    );
    let implementations = implementations.as_array().expect("a list");
    assert_eq!(implementations.len(), 10);
    for implementation in ["tilewise (chosen)", "tilewise (forced)"] {
        assert!(implementations.contains(&json!(implementation)));
    }
    assert!(!implementations.contains(&json!("tilewise")));
}

/// A line says what the order is worth: times, speedups and bytes.
fn comparison(browser: &mut Browser) {
    let rows = browser.evaluate(
        "[...document.querySelectorAll('.comparison tbody tr')].map((row) =>
            [...row.cells].map((cell) => [cell.dataset.head, cell.textContent]))",
    );
    let expected = json!([[
        ["product", "16384×16384×16384 f16 nn"],
        ["kernel", KERNEL],
        ["order", "groupedn:8"],
        ["cold: row-major → order", "15.0 → 12.5\u{a0}ms"],
        ["cold: speedup", "1.20×"],
        ["sustained: row-major → order", "21.0 → 15.0\u{a0}ms"],
        ["sustained: speedup", "1.40×"],
        ["DRAM by the model", "66.2 → 17.2\u{a0}GB"],
    ]]);
    assert_eq!(rows, expected);
    let title = browser.evaluate("document.querySelector('.comparison .chart-title').textContent");
    let title = title.as_str().expect("a text");
    assert!(title.contains("the library’s choice"), "{title}");
}

/// The page is as the system is, until the button says otherwise.
fn theme(browser: &mut Browser) {
    let background = "getComputedStyle(document.body).backgroundColor";
    let system = |browser: &mut Browser, scheme: &str| {
        let preferred = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        browser.call("Emulation.setEmulatedMedia", json!({"features": preferred}));
        browser.evaluate(background)
    };
    let light = system(browser, "light");
    let dark = system(browser, "dark");
    assert_eq!(light, "rgb(255, 255, 255)");
    assert_ne!(light, dark);
    for expected in [&light, &dark] {
        browser.press("#theme", "Enter", 13);
        assert_eq!(&browser.evaluate(background), expected);
        assert_eq!(&system(browser, "light"), expected);
    }
}

/// Nothing is wider than the screen, and no control is without a name.
fn phone(browser: &mut Browser) {
    for screen in [390, 360] {
        let size = json!({"width": screen, "height": 844, "deviceScaleFactor": 2, "mobile": true});
        browser.call("Emulation.setDeviceMetricsOverride", size);
        browser.wait_for(&format!(
            "document.querySelector('#study svg').getBoundingClientRect().width < {screen}"
        ));
        settle(browser);
        let width = browser.evaluate("document.documentElement.scrollWidth");
        assert_eq!(width, screen);
        // Nor is there anything to scroll to within the comparison, the charts and the losses.
        let beyond = browser.evaluate(&format!(
            "[...document.querySelectorAll(':is(.cards, .chart), :is(.cards, .chart) *')]
                .filter((part) => part.getBoundingClientRect().right > {screen}.5 || part.scrollWidth > part.clientWidth + 1 && part.clientWidth > 0)
                .map((part) => part.outerHTML)"
        ));
        assert_eq!(beyond, json!([]), "at {screen} pixels");
    }
    let heads = browser.evaluate(
        "[...document.querySelectorAll('.comparison td')].map((cell) => getComputedStyle(cell, '::before').content)",
    );
    let heads = heads.as_array().expect("a list");
    assert_eq!(heads.len(), 8);
    // A head that is too long for its line is wrapped, and does not run into the figures.
    let wrapped = browser.evaluate(
        "[...document.querySelectorAll('.comparison td')].every((cell) => getComputedStyle(cell, '::before').whiteSpace === 'normal')",
    );
    assert_eq!(wrapped, true);
    assert!(
        heads.contains(&json!("\"sustained: speedup\"")),
        "{heads:?}"
    );
    let nameless = browser.evaluate(
        "[...document.querySelectorAll('input, select, button')]
            .filter((control) => !control.ariaLabel && !control.labels?.length && !control.textContent)
            .map((control) => control.outerHTML)",
    );
    assert_eq!(nameless, json!([]));
}
