# fabric.gp: what a fabric costs the step: step time against oversubscription, and what of the step the network shows.
# data columns: series, oversubscription, step_time_s, tp_comm_s, cp_comm_s, ep_comm_s, pp_comm_s, dp_comm_s; a sweep over
# cluster.network.leaf_oversubscription (or spine_) has them. Left: step time, with the percentage over the series' first
# point at its last. Right: exposed communication.
lib = ARG0[1:strlen(ARG0) - strlen('fabric.gp')] . 'lib.gp'
if (ARGC > 0) { data = ARG1; out = ARG2; title = ARG3; caption = ARG4; separator = "\t" }
width = 1060; height = 470
load lib

stats data using (remember(strcol('series')), 0) nooutput
stats data using (column('oversubscription')):(column('step_time_s')) nooutput
over_lo = STATS_min_x
over_hi = STATS_max_x
step_hi = STATS_max_y
step_lo = STATS_min_y

# Ticks at the oversubscriptions there are, once each, as 4:1.
ratios = ''
stats data using (strstrt(' ' . ratios, ' ' . sprintf('%g', column('oversubscription')) . ' ') ? 0 : (ratios = ratios . sprintf('%g ', column('oversubscription')), 0)) nooutput

# First and last point of each series, by oversubscription.
array First_step[n_names]
array Last_step[n_names]
array Last_over[n_names]
do for [i = 1:n_names] {
  set table $sorted
  plot data using (strcol('series') eq name(i) ? column('oversubscription') : NaN):(column('step_time_s')) smooth unique
  unset table
  First_step[i] = NaN
  do for [j = 1:|$sorted|] {
    if (words($sorted[j]) >= 2 && word($sorted[j], 1)[1:1] ne '#') {
      if (First_step[i] != First_step[i]) { First_step[i] = real(word($sorted[j], 2)) }
      Last_over[i] = real(word($sorted[j], 1))
      Last_step[i] = real(word($sorted[j], 2))
    }
  }
}

set multiplot
set tmargin at screen 1 - head - 12.0 / height
set bmargin at screen foot + 58.0 / height
if (over_hi / over_lo > 1.0001) { set logscale x 2 }
set xlabel 'oversubscription (rate down over rate up)' textcolor rgb ink
set xrange [over_lo / 1.12 : over_hi * (over_hi / over_lo > 3 ? 1.6 : 1.25)]
set xtics ()
do for [k = 1:words(ratios)] { set xtics add (word(ratios, k) . ':1' real(word(ratios, k))) }
set lmargin at screen 0.075
set rmargin at screen 0.485
set key left top Left reverse
set ylabel 'step time, s' textcolor rgb ink offset 0.5, 0
set format y '%g'
set yrange [0 : step_hi * (1.12 + 0.06 * n_names)]
more(i) = sprintf('%+.1f %%', 100 * (Last_step[i] / First_step[i] - 1))
# Two ends that lie close together say theirs above and below.
close_by(i) = sum [j = 1:n_names] (j < i && abs(Last_step[j] - Last_step[i]) < 0.06 * step_hi)
do for [i = 1:n_names] {
  if (Last_over[i] == Last_over[i]) {
    set label 100 + i more(i) at Last_over[i], Last_step[i] left offset 0.8, 1.0 * close_by(i) * -1 textcolor rgb Colour[pick(i)] front
  }
}
plot for [i = 1:n_names] data \
       using (strcol('series') eq name(i) ? column('oversubscription') : NaN):(column('step_time_s')) smooth unique \
       with linespoints linecolor rgb Colour[pick(i)] dashtype Dash[pick(i)] pointtype Point[pick(i)] linewidth 1.8 \
       title name(i)

unset label 901
unset label 902
do for [i = 1:n_names] { unset label 100 + i }
unset key
set lmargin at screen 0.575
set rmargin at screen 0.985
shown(i) = column('tp_comm_s') + column('cp_comm_s') + column('ep_comm_s') + column('pp_comm_s') + column('dp_comm_s')
set ylabel 'communication that is not hidden, s' textcolor rgb ink offset -0.5, 0
set yrange [0 : *]
plot for [i = 1:n_names] data \
       using (strcol('series') eq name(i) ? column('oversubscription') : NaN):(shown(i)) smooth unique \
       with linespoints linecolor rgb Colour[pick(i)] dashtype Dash[pick(i)] pointtype Point[pick(i)] linewidth 1.8
unset multiplot
