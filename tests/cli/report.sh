#!/bin/sh
# shellcheck disable=SC2015 # ok never fails
# The page for a meeting: what is in it, that it needs nothing else, and how a browser takes it.
# shellcheck source=tests/cli/lib.inc
. tests/cli/lib.inc
page=$tmp/report.html
has () { grep -Eq -- "$2" "$page" && ok "$1" || nok "$1" "no $2"; }

sim report gpt3-175b-h100 llama-3-8b-h100 --alternatives 4 --question 'Is <b>175B</b> "worth" it?' -o "$page"
[ $rc -eq 0 ] && [ -s "$page" ] && [ ! -s "$out" ] && ok "a page of two scenarios" || nok "a page of two scenarios"
has "the question, escaped" '<h1>Is &lt;b&gt;175B&lt;/b&gt; &quot;worth&quot; it\?</h1>'
sim predict gpt3-175b-h100 --format json
step=$(sed -n 's/.*"step_time_s": *\([0-9.]*\).*/\1/p' "$out" | head -1)
has "the step of predict" "GPT 175B on 128 H100: <b>$(printf '%.4g' "$step") s</b>"
has "its range" 'measured should lie in'
has "the published figure" 'NVIDIA DGX Cloud'
has "an assumption" 'class="assumed"'
has "a source" 'measured</td>'
[ "$(grep -c '^<tr><td class="t">tp ' "$page")" -eq 4 ] && ok "four alternatives" || nok "four alternatives"
if command -v gnuplot >/dev/null; then
  [ "$(grep -c '<figure' "$page")" -eq 4 ] && ok "four pictures in the page" || nok "four pictures in the page"
  ids=$(grep -o "id=['\"][^'\"]*" "$page" | sort | uniq -d | wc -l)
  [ "$ids" -eq 0 ] && ok "no id twice" || nok "no id twice" "$ids"
  (PATH=/nowhere "$CLUSTERSIM" report llama-3-8b-h100 --alternatives 0 -o "$tmp/bare.html") >"$out" 2>"$err"
  grep -q 'without pictures.*gnuplot' "$err" && grep -q 'Without pictures' "$tmp/bare.html" && ok "without gnuplot it says so" || nok "without gnuplot it says so"
else
  skip "pictures" "no gnuplot here"
fi
# Names of XML are no addresses; nothing is fetched.
grep -Eo '(src|href|url|import)[ =(]*["'"'"']?(https?:)?//[^"'"'"' )>]*' "$page" | grep -v 'www.w3.org' >"$tmp/links"
[ ! -s "$tmp/links" ] && ok "nothing from a network" || nok "nothing from a network" "$(head -3 "$tmp/links")"
sim report gpt3-175b-h100 --alternatives 4 -o "$tmp/a.html"
cp "$tmp/a.html" "$tmp/b.html"
sim report gpt3-175b-h100 --alternatives 4 -o "$tmp/a.html"
cmp -s "$tmp/a.html" "$tmp/b.html" && ok "the same twice" || nok "the same twice"
refused "a scenario that is not there" 2 'nowhere' report gpt3-175b-h100 nowhere -o "$tmp/x.html"
[ ! -e "$tmp/x.html" ] && ok "and no page" || nok "and no page"
refused "a page that cannot be written" 1 'cannot be written' report llama-3-8b-h100 --alternatives 0 -o "$tmp/no/x.html"

# ---- in a browser ----
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome)
if [ -z "$browser" ] || [ -n "$SANITIZED" ]; then
  skip "in a browser" "no chromium here (or once is enough)"
  finish
  exit 0
fi
chrome () { timeout 60 "$browser" --headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking \
  --disable-component-update --disable-sync --user-data-dir="$tmp/chrome" --virtual-time-budget=2000 --enable-logging=stderr "$@"; }
chrome --dump-dom "file://$page" >"$tmp/dom" 2>"$tmp/log"
grep -q 'CONSOLE' "$tmp/log" && nok "no word on the console" "$(grep CONSOLE "$tmp/log" | head -2)" || ok "no word on the console"
grep -q '<h2>Compared</h2>' "$tmp/dom" && ok "it opens from a file" || nok "it opens from a file"
# Sorting: click the heads of the first table, and write down the order of a column.
cat >"$tmp/click.js" <<'JS'
<script>var t=document.querySelector('table.sort'),o=[];function see(i){o.push(Array.prototype.map.call(t.tBodies[0].rows,
function(r){return r.cells[i].dataset.v||r.cells[i].textContent}).join(' < '))}
t.tHead.rows[0].cells[3].click();see(3);t.tHead.rows[0].cells[3].click();see(3);t.tHead.rows[0].cells[0].click();see(0);
document.title=o.join(' | ')</script>
JS
sed "/<\/body>/{
r $tmp/click.js
}" "$page" >"$tmp/click.html"
chrome --dump-dom "file://$tmp/click.html" 2>/dev/null | grep -o '<title>[^/]*' >"$tmp/title"
awk -F'[|]' '{ n = split ($1, a, " &lt; "); split ($2, b, " &lt; "); sub (/.*>/, "", a[1])
  exit !(n == 2 && a[1] + 0 < a[2] + 0 && b[1] + 0 > b[2] + 0 && $3 ~ /GPT.*Llama/) }' "$tmp/title" &&
  ok "tables sort, up, down and by text" || nok "tables sort" "$(cat "$tmp/title")"
chrome --no-pdf-header-footer --print-to-pdf="$tmp/p.pdf" "file://$page" >/dev/null 2>&1
[ "$(head -c 5 "$tmp/p.pdf" 2>/dev/null)" = "%PDF-" ] && [ "$(wc -c <"$tmp/p.pdf")" -gt 20000 ] && ok "it prints" || nok "it prints"
finish
