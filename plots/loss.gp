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
# Laws, sizes and runs are counted apart: a run has no colour of a law. Colour and dash run through cycles of different
# lengths, so that no two of 55 lines are alike.
array Rank[n_names]
n_lines = 0
n_runs = 0
do for [i = 1:n_names] {
  if (Kind[i] eq 'run') { n_runs = n_runs + 1; Rank[i] = n_runs } else { n_lines = n_lines + 1; Rank[i] = n_lines }
}
array Line_colour[11] = ['#0072B2', '#D55E00', '#009E73', '#CC79A7', '#E69F00', '#56B4E9', '#8C6D1F', '#6A3D9A', '#A61C3C', '#7A9A01', '#17A2A8']
array Run_colour[4] = ['#000000', '#666666', '#333333', '#8C8C8C']
array Run_point[4]  = [6, 4, 8, 12]
colour_of(i) = Kind[i] eq 'run' ? Run_colour[(Rank[i] - 1) % 4 + 1] : Line_colour[(Rank[i] - 1) % 11 + 1]
dash_of(i) = Dash[(Rank[i] - 1) % 5 + 1]
point_of(i) = Run_point[(Rank[i] - 1) % 4 + 1]
width_of(i) = Kind[i] ne 'optimal' ? 1.0 + 0.5 * (optimal < 2) : optimal < 2 ? 2.8 : 1.8
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
set key right top Right samplen 5
# Lines and points apart: gnuplot warns of a clause without a row, and fails at one over nothing.
lines = ''
optimal = 0
runs = ''
do for [i = 1:n_names] {
  if (Kind[i] eq 'run') { runs = runs . sprintf('%d ', i) } else { lines = lines . sprintf('%d ', i) }
  optimal = optimal + (Kind[i] eq 'optimal' ? 1 : 0)
}
# Said once when there are several.
if (optimal > 1) { set key title 'compute-optimal' . (optimal < n_lines ? ' (thick lines)' : '') right }
title_of(i) = name(i) . (Kind[i] eq 'optimal' && optimal == 1 ? ', compute-optimal' : '')
if (strlen(runs) > 0 && strlen(lines) > 0) {
  plot for [k in lines] data using (column('compute_flops')):(y_of(int(k))) smooth unique \
       with lines linecolor rgb colour_of(int(k)) dashtype dash_of(int(k)) linewidth width_of(int(k)) \
       title title_of(int(k)), \
     for [k in runs] data using (column('compute_flops')):(y_of(int(k))) \
       with points linecolor rgb colour_of(int(k)) pointtype point_of(int(k)) pointsize 0.6 linewidth 0.8 title name(int(k))
} else {
  if (strlen(lines) > 0) {
    plot for [k in lines] data using (column('compute_flops')):(y_of(int(k))) smooth unique \
       with lines linecolor rgb colour_of(int(k)) dashtype dash_of(int(k)) linewidth width_of(int(k)) \
       title title_of(int(k))
  } else {
    plot for [k in runs] data using (column('compute_flops')):(y_of(int(k))) \
       with points linecolor rgb colour_of(int(k)) pointtype point_of(int(k)) pointsize 0.6 linewidth 0.8 title name(int(k))
  }
}
