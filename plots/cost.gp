# cost.gp: days and money against the number of GPUs, on two panels. The dashed line is the same run without any
# disturbance; the bars hold nine single runs in ten.
# data columns: series, gpus, days, days_lo, days_hi, undisturbed_days, usd (either may be empty);
# `clustersim campaign --curve cost` writes them.
lib = ARG0[1:strlen(ARG0) - strlen('cost.gp')] . 'lib.gp'
if (ARGC > 0) { data = ARG1; out = ARG2; title = ARG3; caption = ARG4; separator = "\t" }
width = 1060; height = 460
load lib

stats data using (remember(strcol('series')), 0) nooutput
stats data using (column('gpus')):(column('days_hi')) nooutput
gpus_lo = STATS_min_x
gpus_hi = STATS_max_x
days_hi = STATS_max_y
stats data using (column('days_lo')) nooutput
days_lo = STATS_min
span_days(v) = v > 0 ? (days_lo = v < days_lo ? v : days_lo, days_hi = v > days_hi ? v : days_hi, 0) : 0
stats data using (span_days(column('undisturbed_days') == column('undisturbed_days') ? column('undisturbed_days') : 0)) nooutput

# Ticks at the sizes of the points; where these crowd, those at least a quarter above the last tick.
sizes = ''
stats data using (strstrt(' ' . sizes, ' ' . sprintf('%.0f', column('gpus')) . ' ') ? 0 : (sizes = sizes . sprintf('%.0f ', column('gpus')), 0)) nooutput
priced = 0
usd_hi = 0.0
count(v) = v > 0 ? (priced = priced + 1, usd_hi = v > usd_hi ? v : usd_hi, 0) : 0
stats data using (count(column('usd') == column('usd') ? column('usd') : 0)) nooutput
unit = usd_hi >= 2e6 ? 1e6 : 1e3

set multiplot
set tmargin at screen 1 - head - 12.0 / height
set bmargin at screen foot + 58.0 / height
set logscale x 2
set xlabel 'GPUs' textcolor rgb ink
set format x '%.0f'
set xrange [gpus_lo / 1.25 : gpus_hi * 1.25]
set xtics ()
# The smallest size above the last tick, until none is left.
ticks = 0
floor_gpus = 0.0
do for [k = 1:words(sizes)] {
  next = 1e30
  do for [j = 1:words(sizes)] {
    v = real(word(sizes, j))
    next = v >= floor_gpus && v < next ? v : next
  }
  if (next < 1e30) {
    set xtics add (sprintf('%.0f', next) next)
    ticks = ticks + 1
    floor_gpus = next * (gpus_hi / gpus_lo > 2 ? (gpus_hi / gpus_lo) ** (1.0 / 14) : 1.0001)
  }
}
set xtics rotate by (ticks > 7 ? -35 : 0)
set lmargin at screen 0.075
set rmargin at screen (priced > 0 ? 0.485 : 0.985)
set logscale y 2
set ytics ()
do for [e = floor(log10(days_lo)) - 1:ceil(log10(days_hi))] { do for [m in '1 2 5'] {
  v = m * 10.0 ** e
  if (v > days_lo / 2 && v < days_hi * 2) { set ytics add (sprintf('%g', v) v) }
} }
set ylabel 'days' textcolor rgb ink offset 0.5, 0
set yrange [days_lo / 1.6 : days_hi * 1.6]
set key right top
of(i) = strcol('series') eq name(i) ? column('gpus') : NaN
plot for [i = 1:n_names] data using (of(i)):(column('days')):(column('days_lo')):(column('days_hi')) \
       with yerrorlines linecolor rgb Colour[pick(i)] pointtype Point[pick(i)] linewidth 1.6 title name(i), \
     for [i = 1:n_names] data using (of(i)):(column('undisturbed_days')) smooth unique \
       with lines linecolor rgb '#555555' dashtype 3 linewidth 1.8 title i == 1 ? 'without any disturbance' : ''

if (priced > 0) {
  unset label 901
  unset label 902
  unset key
  set lmargin at screen 0.575
  set rmargin at screen 0.985
  unset logscale y
  set ytics autofreq
  set format y '%g'
  set ylabel (unit > 1e5 ? 'million USD' : 'thousand USD') textcolor rgb ink offset -0.5, 0
  set yrange [0 : *]
  plot for [i = 1:n_names] data using (of(i)):(column('usd') / unit) smooth unique \
         with linespoints linecolor rgb Colour[pick(i)] dashtype Dash[pick(i)] pointtype Point[pick(i)] linewidth 1.6
}
unset multiplot
