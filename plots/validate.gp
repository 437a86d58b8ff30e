# validate.gp: predicted against published, on two logarithmic axes, coloured by group; the band is 10 % either way.
# data columns: id, group, published, predicted (both positive, one unit); rows without a prediction are left out.
lib = ARG0[1:strlen(ARG0) - strlen('validate.gp')] . 'lib.gp'
if (ARGC > 0) { data = ARG1; out = ARG2; title = ARG3; caption = ARG4; separator = "\t" }
width = 980
height = 700
load lib

# Both cells as positive numbers, or nothing.
ok(x, y) = x > 0 && y > 0
pub(dummy) = ok(column('published'), column('predicted')) ? column('published') : NaN
pre(dummy) = ok(column('published'), column('predicted')) ? column('predicted') : NaN

stats data using (remember(strcol('group')), pub(0)):(pre(0)) nooutput
rows = STATS_records
lo = (STATS_min_x < STATS_min_y ? STATS_min_x : STATS_min_y) / 1.3
hi = (STATS_max_x > STATS_max_y ? STATS_max_x : STATS_max_y) * 1.3
stats data using (abs(pre(0) / pub(0) - 1)) nooutput
median = 100 * STATS_median
stats data using (abs(pre(0) / pub(0) - 1) <= 0.1 ? 1 : 0) nooutput

set logscale xy
set xrange [lo : hi]
set yrange [lo : hi]
set format xy '%g'
set xlabel 'published' textcolor rgb ink
set ylabel 'predicted' textcolor rgb ink
set size ratio 1
set lmargin at screen 110.0 / width # the largest numbers, and the axis' name left of them
set rmargin at screen 0.68
set tmargin at screen 1 - head - 10.0 / height
set bmargin at screen foot + 58.0 / height
set key at screen 0.70, graph 1 left top Left reverse samplen 1
key_font = is_png ? 'DejaVu Sans,7.5' : 'DejaVu Sans,9'
if (n_names > 26) { set key font key_font spacing 0.85 }
# Long names differ in their ends as often as in their beginnings.
short(s) = strlen(s) > 42 ? s[1:20] . '…' . s[strlen(s) - 20:*] : s
shape(i) = Point[pick(i + (i - 1) / 8)] # each round of colours has other shapes
set label 903 sprintf("%d rows\nmedian error %.1f %%\n%.0f %% of them within 10 %%", rows, median, 100 * STATS_mean) \
  at graph 0.03, graph 0.96 left front textcolor rgb ink
plot [lo:hi] '+' using 1:(0.9 * $1):(1.1 * $1) with filledcurves fillcolor rgb '#E0E0E0' \
       fillstyle solid noborder title 'within 10 %', \
     [lo:hi] x with lines linecolor rgb '#888888' dashtype 3 linewidth 1.2 notitle, \
     for [i = 1:n_names] data using (strcol('group') eq name(i) ? pub(0) : NaN):(pre(0)) \
       with points pointtype shape(i) pointsize is_png ? 0.8 : 0.6 linecolor rgb Colour[pick(i)] title short(name(i))
