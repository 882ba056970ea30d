/* style.h - the style sheet of report.html: colors as variables for light and dark, widths in rem
 * and per cent. */
#ifndef CLI_PAGE_STYLE_H
#define CLI_PAGE_STYLE_H

/* The style sheet in several strings, since a longer literal is not portable C. */
static const char *const page_style[] = {
    ":root{color-scheme:light dark;--bg:#f7f7f5;--card:#fff;--ink:#1c1d1f;--soft:#5c6068;"
    "--line:#dfe0e3;--one:#2460c4;--two:#c24e0a;--bad:#b3261e;--cell:36,96,196}\n"
    "@media(prefers-color-scheme:dark){:root{--bg:#131519;--card:#1a1d22;--ink:#e7e8eb;"
    "--soft:#9ea4ae;--line:#30343c;--one:#78aeff;--two:#ff9d5c;--bad:#ff8b80;"
    "--cell:120,174,255}}\n"
    "*{box-sizing:border-box}\n"
    "body{margin:0;background:var(--bg);color:var(--ink);font:16px/1.5 system-ui,sans-serif}\n"
    "main{max-width:84rem;margin:0 auto;padding:2rem clamp(1rem,4vw,3rem) 4rem}\n"
    "h1,p,pre,dd,td{overflow-wrap:anywhere}\n"
    "h1{font-size:1.8rem;line-height:1.2;margin:0 0 .4rem}\n"
    "h2{font-size:1.25rem;margin:2.5rem 0 .75rem}\n"
    "p{margin:.25rem 0 .75rem;max-width:46rem}\n"
    ".note,.sub,dt,th{color:var(--soft);font-size:.85rem}\n"
    "pre{padding:.75rem 1rem;background:var(--card);border:1px solid var(--line);"
    "border-radius:.5rem;white-space:pre-wrap}\n"
    "dl{display:grid;grid-template-columns:minmax(7rem,max-content) minmax(0,1fr);"
    "gap:.3rem 1.25rem;font-size:.92rem}\n"
    "dd{margin:0}\n",

    ".frame{overflow-x:auto;background:var(--card);border:1px solid var(--line);"
    "border-radius:.6rem;margin:.5rem 0 1rem;max-width:max-content}\n"
    "table{border-collapse:collapse;font-size:.88rem;font-variant-numeric:tabular-nums}\n"
    "th,td{padding:.3rem .5rem;text-align:right;font-weight:400}\n"
    "tr+tr{border-top:1px solid var(--line)}\n"
    ".l{text-align:left;max-width:18rem;overflow-wrap:anywhere}\n"
    ".bad{color:var(--bad)}\n"
    ".columns{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,21rem),1fr));"
    "gap:1rem}\n"
    "figure{margin:0;background:var(--card);border:1px solid var(--line);border-radius:.6rem;"
    "padding:.9rem 1rem .6rem;min-width:0}\n"
    "figcaption{font-size:.9rem;font-weight:600}\n"
    ".key{font-weight:400;font-size:.8rem;margin-left:1rem;border-bottom:2px solid}\n"
    ".one{stroke:var(--one);border-color:var(--one)}.two{stroke:var(--two);border-color:var(--two)}"
    "\n"
    ".chart{display:block;width:100%;height:auto}\n"
    ".chart text{fill:var(--soft);font-size:12px}\n"
    ".grid{stroke:var(--line)}\n"
    ".line{fill:none;stroke-width:2;stroke-linejoin:round}\n"
    ".dot{stroke:none}.dot.one{fill:var(--one)}.dot.two{fill:var(--two)}\n"
    ".pictures{display:flex;flex-wrap:wrap;gap:.75rem;padding:0;list-style:none}\n"
    ".pictures li{width:8.2rem;background:var(--card);border:1px solid var(--line);"
    "border-radius:.6rem;padding:.5rem;font-size:.8rem;overflow-wrap:anywhere}\n"
    ".pictures img{display:block;width:100%;height:7rem;object-fit:contain;"
    "image-rendering:pixelated;margin-bottom:.4rem}\n"
    "@media print{body{background:#fff}figure,li,tr{break-inside:avoid}}\n",
};

#endif
