# scaling.gp: throughput and MFU against the number of GPUs, one line a series.
# data columns: series, gpus, tokens_per_s, mfu (a fraction; may be empty). The dashed grey lines are what the smallest
# size of each series would give if it scaled without loss.
lib = ARG0[1:strlen(ARG0) - strlen('scaling.gp')] . 'lib.gp'
if (ARGC > 0) { data = ARG1; out = ARG2; title = ARG3; caption = ARG4; separator = "\t" }
width = 1060; height = 480
load lib

stats data using (remember(strcol('series')), 0) nooutput
stats data using (column('gpus')):(column('tokens_per_s')) nooutput
gpus_lo = STATS_min_x
gpus_hi = STATS_max_x
rate_lo = STATS_min_y
rate_hi = STATS_max_y

# First point of each series: rows sorted by the number of GPUs, the first of them.
array First_gpus[n_names]
array First_rate[n_names]
do for [i = 1:n_names] {
  set table $sorted
  plot data using (strcol('series') eq name(i) ? column('gpus') : NaN):(column('tokens_per_s')) smooth unique
  unset table
  do for [j = |$sorted|:1:-1] {
    if (words($sorted[j]) >= 2 && word($sorted[j], 1)[1:1] ne '#') {
      First_gpus[i] = real(word($sorted[j], 1))
      First_rate[i] = real(word($sorted[j], 2))
    }
  }
}

set multiplot
set tmargin at screen 1 - head - 12.0 / height
set bmargin at screen foot + 58.0 / height
set logscale x 2
set xlabel 'GPUs' textcolor rgb ink
set format x '%.0f'
set xrange [gpus_lo / 1.15 : gpus_hi * 1.15]
set xtics rotate by (gpus_hi / gpus_lo > 300 ? -35 : 0)

# Lines rise to the right, so the legend has its place at the top left.
set lmargin at screen 0.075
set rmargin at screen 0.485
set key left top Left reverse
set logscale y 2
set ytics () # 1, 2 and 5 times a power of ten: no power of two reads well
do for [e = floor(log10(rate_lo)) - 1:ceil(log10(rate_hi))] {
  do for [m in '1 2 5'] {
    v = m * 10.0 ** e
    if (v > rate_lo / 1.3 && v < rate_hi * 1.6) { set ytics add (gprintf(v < 1 ? '%g' : '%.0s%c', v) v) }
  }
}
set ylabel 'tokens / s' textcolor rgb ink offset 0.5, 0
set yrange [rate_lo / 1.3 : rate_hi * 1.6]
plot for [i = 1:n_names] data \
       using (strcol('series') eq name(i) ? column('gpus') : NaN):(column('tokens_per_s')) smooth unique \
       with linespoints linecolor rgb Colour[pick(i)] dashtype Dash[pick(i)] pointtype Point[pick(i)] linewidth 1.8 \
       title name(i), \
     for [i = 1:n_names] [gpus_lo:gpus_hi] x < First_gpus[i] ? NaN : First_rate[i] / First_gpus[i] * x \
       with lines linecolor rgb '#888888' dashtype 3 linewidth 1.2 \
       title i == 1 ? 'without loss, from the smallest size' : ''

unset label 901
unset label 902
unset key
set lmargin at screen 0.575
set rmargin at screen 0.985
unset logscale y
set ytics autofreq
set format y '%.0f %%'
set ylabel 'model FLOPs utilisation' textcolor rgb ink offset -0.5, 0
set yrange [0 : *]
plot for [i = 1:n_names] data \
       using (strcol('series') eq name(i) ? column('gpus') : NaN):(100 * column('mfu')) smooth unique \
       with linespoints linecolor rgb Colour[pick(i)] dashtype Dash[pick(i)] pointtype Point[pick(i)] linewidth 1.8
unset multiplot
