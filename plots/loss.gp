# loss.gp: loss against training compute: compute-optimal lines, lines of one model size, and the points of runs.
# data columns: series, kind (optimal, size or run), compute_flops, loss; `clustersim law curve` writes them. Optimal
# lines are thick; the sizes lie above them and touch them where a size is optimal.
lib = ARG0[1:strlen(ARG0) - strlen('loss.gp')] . 'lib.gp'
if (ARGC > 0) { data = ARG1; out = ARG2; title = ARG3; caption = ARG4; separator = "\t" }
width = 900; height = 560
load lib

stats data using (remember(strcol('series')), 0) nooutput
stats data using (column('compute_flops')):(column('loss')) nooutput
flops_lo = STATS_min_x
flops_hi = STATS_max_x
loss_lo = STATS_min_y
loss_hi = STATS_max_y

# The kind of each series, from its first row, and how often its points would crowd a line.
array Kind[n_names]
array Rows[n_names]
do for [i = 1:n_names] { Rows[i] = 0 }
note_kind(i, k) = (Rows[i] = Rows[i] + 1, Kind[i] = k, 0)
do for [i = 1:n_names] {
  stats data using (strcol('series') eq name(i) ? note_kind(i, strcol('kind')) : 0) nooutput
}
width_of(i) = Kind[i] eq 'optimal' ? 2.8 : 1.5
y_of(i) = strcol('series') eq name(i) ? column('loss') : NaN

set tmargin at screen 1 - head - 12.0 / height
set bmargin at screen foot + 58.0 / height
set lmargin at screen 76.0 / width
set rmargin at screen 1 - 24.0 / width
set logscale x 10
set logscale y 10
set xlabel 'training compute, FLOPs' textcolor rgb ink
set ylabel 'loss, nats per token' textcolor rgb ink offset 0.5, 0
set format x '1e%T'
set xrange [flops_lo / 1.3 : flops_hi * 1.3]
set yrange [loss_lo / 1.02 : loss_hi * 1.02]
# A loss spans little more than an octave: round steps, not powers of ten.
step = loss_hi / loss_lo > 2.5 ? 0.5 : loss_hi / loss_lo > 1.5 ? 0.2 : 0.1
set ytics ()
do for [k = ceil(loss_lo / step):floor(loss_hi / step)] {
  set ytics add (sprintf('%.1f', k * step) k * step)
}
set key right top Right
# Lines and points apart: gnuplot warns of a clause without a row, and fails at one over nothing.
lines = ''
runs = ''
do for [i = 1:n_names] {
  if (Kind[i] eq 'run') { runs = runs . sprintf('%d ', i) } else { lines = lines . sprintf('%d ', i) }
}
if (strlen(runs) > 0 && strlen(lines) > 0) {
  plot for [k in lines] data using (column('compute_flops')):(y_of(int(k))) smooth unique \
       with lines linecolor rgb Colour[pick(int(k))] dashtype Dash[pick(int(k))] linewidth width_of(int(k)) \
       title name(int(k)) . (Kind[int(k)] eq 'optimal' ? ', compute-optimal' : ''), \
     for [k in runs] data using (column('compute_flops')):(y_of(int(k))) \
       with points linecolor rgb Colour[pick(int(k))] pointtype Point[pick(int(k))] pointsize 0.8 title name(int(k))
} else {
  if (strlen(lines) > 0) {
    plot for [k in lines] data using (column('compute_flops')):(y_of(int(k))) smooth unique \
       with lines linecolor rgb Colour[pick(int(k))] dashtype Dash[pick(int(k))] linewidth width_of(int(k)) \
       title name(int(k)) . (Kind[int(k)] eq 'optimal' ? ', compute-optimal' : '')
  } else {
    plot for [k in runs] data using (column('compute_flops')):(y_of(int(k))) \
       with points linecolor rgb Colour[pick(int(k))] pointtype Point[pick(int(k))] pointsize 0.8 title name(int(k))
  }
}
