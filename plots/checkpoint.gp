# checkpoint.gp: goodput against the interval between checkpoints: simulated with its 95 % interval, the closed form
# where there is one, the best interval, and the flat band about it (within half a point of the best).
# data columns: series, kind (simulated, closed form, best, flat from, flat to), interval_s, goodput_percent, lo_percent,
# hi_percent; `clustersim campaign --curve checkpoint` writes them.
lib = ARG0[1:strlen(ARG0) - strlen('checkpoint.gp')] . 'lib.gp'
if (ARGC > 0) { data = ARG1; out = ARG2; title = ARG3; caption = ARG4; separator = "\t" }
height = 500
load lib

stats data using (remember(strcol('series')), 0) nooutput
stats data using (column('interval_s')):(column('hi_percent')) nooutput
y_hi = STATS_max_y
# The unit by the middle of the intervals, on their logarithmic axis.
middle = sqrt(STATS_min_x * STATS_max_x)
per_unit = middle < 0.5 ? 1e-3 : middle < 60 ? 1.0 : middle < 7200 ? 60.0 : 3600.0
unit = middle < 0.5 ? 'ms' : middle < 60 ? 's' : middle < 7200 ? 'min' : 'h'
unit_word = middle < 0.5 ? 'milliseconds' : middle < 60 ? 'seconds' : middle < 7200 ? 'minutes' : 'hours'
x_lo = STATS_min_x / per_unit
x_hi = STATS_max_x / per_unit
stats data using (column('lo_percent')) nooutput
y_lo = STATS_min

# Best interval and band of each series.
array Best[n_names]
array Top[n_names]
array From[n_names]
array To[n_names]
note(i, k, m, g) = (k eq 'best' ? (Best[i] = m, Top[i] = g, 0) : k eq 'flat from' ? (From[i] = m, 0) : \
                    k eq 'flat to' ? (To[i] = m, 0) : 0)
closed = 0
do for [i = 1:n_names] {
  Best[i] = 0
  stats data using (strcol('series') eq name(i) ? note(i, strcol('kind'), column('interval_s') / per_unit, column('goodput_percent')) : 0) nooutput
}
stats data using (strcol('kind') eq 'closed form' ? (closed = closed + 1, 0) : 0) nooutput

# The legend stands above the frame, where it hides nothing.
key_rows = n_names > 1 ? n_names * (closed > 0 ? 2 : 1) + 1 : 1
set tmargin at screen 1 - head - (12.0 + 18.0 * key_rows) / height
set bmargin at screen foot + 58.0 / height
set lmargin at screen 76.0 / width
set rmargin at screen 1 - 24.0 / width
set logscale x 2
set xlabel unit_word . ' of work between checkpoints' textcolor rgb ink
set ylabel 'goodput, %' textcolor rgb ink offset 0.5, 0
set format x '%.3g'
set xrange [x_lo / 1.1 : x_hi * 1.1]
pad = (y_hi - y_lo) * 0.08 + 0.2
top = y_hi + 0.3 * pad
# Above the bars a line of text for the best of each series.
room = (top - y_lo + pad) * 0.065
set yrange [y_lo - pad : top + room * (n_names + 0.3)]
set key at screen 0.5, screen 1 - head - 4.0 / height center top horizontal maxcols (n_names > 1 ? 1 : 3) Left reverse
band_colour = n_names > 1 ? '#888888' : Colour[1]
do for [i = 1:n_names] {
  if (Best[i] > 0) {
    # At the place of the best; left of its line where the text would leave the frame.
    at_right = log(Best[i] / x_lo) > 0.6 * log(x_hi / x_lo)
    set object i rectangle from first From[i], graph 0 to first To[i], graph 1 behind fillcolor rgb Colour[pick(i)] \
      fillstyle solid 0.15 noborder
    level = top + room * (n_names - i + 0.6)
    set arrow i from first Best[i], graph 0 to first Best[i], first level nohead linecolor rgb Colour[pick(i)] dashtype 3
    best = sprintf('best %.3g %s: %.2f %%', Best[i], unit, Top[i])
    if (at_right) {
      set label i best at first Best[i], first level offset -0.6, 0 right textcolor rgb Colour[pick(i)]
    } else {
      set label i best at first Best[i], first level offset 0.6, 0 left textcolor rgb Colour[pick(i)]
    }
  }
}
is(i, k) = strcol('series') eq name(i) && strcol('kind') eq k
suffix(i, s) = n_names > 1 ? name(i) . ', ' . s : s
# A clause without a point draws a warning, so the closed form has its own plot.
simulated(i) = is(i, 'simulated') ? column('interval_s') / per_unit : NaN
if (closed > 0) {
  plot for [i = 1:n_names] data using (simulated(i)):(column('goodput_percent')):(column('lo_percent')):(column('hi_percent')) \
         with yerrorbars linecolor rgb Colour[pick(i)] pointtype Point[pick(i)] pointsize 0.7 title suffix(i, 'simulated, 95 % interval'), \
       for [i = 1:n_names] data using (is(i, 'closed form') ? column('interval_s') / per_unit : NaN):(column('goodput_percent')) smooth unique \
         with lines linecolor rgb ink dashtype Dash[pick(i)] linewidth 1.6 title suffix(i, 'closed form'), \
       keyentry with boxes fillcolor rgb band_colour fillstyle solid 0.25 border linecolor rgb band_colour title 'within half a point of the best'
} else {
  plot for [i = 1:n_names] data using (simulated(i)):(column('goodput_percent')):(column('lo_percent')):(column('hi_percent')) \
         with yerrorbars linecolor rgb Colour[pick(i)] pointtype Point[pick(i)] pointsize 0.7 title suffix(i, 'simulated, 95 % interval'), \
       for [i = 1:n_names] data using (simulated(i)):(column('goodput_percent')) smooth unique \
         with lines linecolor rgb Colour[pick(i)] dashtype Dash[pick(i)] linewidth 1.2 notitle, \
       keyentry with boxes fillcolor rgb band_colour fillstyle solid 0.25 border linecolor rgb band_colour title 'within half a point of the best'
}
