# goodput.gp: where the time of a campaign goes, a bar a series, stacked by cause. Useful work stands apart at the right
# end of its scale: the axis begins where the losses can be seen.
# data columns: series, cause, percent; `clustersim campaign --curve goodput` writes them.
lib = ARG0[1:strlen(ARG0) - strlen('goodput.gp')] . 'lib.gp'
if (ARGC > 0) { data = ARG1; out = ARG2; title = ARG3; caption = ARG4; separator = "\t" }
causes = 'useful_work wasted_progress checkpoint_save checkpoint_restore program_startup training_prep detection ' . \
         'waiting_for_nodes elastic_changes stragglers data_loading evaluation maintenance batch_ramp initialization'
titles = '"useful work" "work done again" "saving" "restoring" "set-up" "warm-up" "detection" "waiting for nodes" ' . \
         '"elastic changes" "stragglers" "data" "evaluation" "maintenance" "batch ramp" "first start"'
array Fill[15]    = ['#009E73', '#D55E00', '#0072B2', '#56B4E9', '#E69F00', '#7A6A00', '#B0307C', '#8C6D1F', '#000000', '#666666', '#2A8FC4', '#999999', '#0072B2', '#C98500', '#444444']
array Pattern[15] = [3, 4, 3, 2, 3, 2, 3, 2, 3, 4, 5, 3, 2, 1, 5]

width = 1000
load lib
stats data using (remember(strcol('series')), 0) nooutput
height = 210 + 60 * n_names
load lib # again, for the height that the number of bars needs
stats data using (remember(strcol('series')), 0) nooutput

# Share of each cause of each series: a table of n_names rows.
array Share[15 * n_names]
do for [k = 1:15 * n_names] { Share[k] = 0.0 }
put(i, p, v) = (Share[(i - 1) * 15 + p] = v, 0)
do for [i = 1:n_names] { do for [p = 1:15] {
  stats data using (strcol('series') eq name(i) && strcol('cause') eq word(causes, p) ? put(i, p, column('percent')) : 0) nooutput
} }
least = 100.0
label_width = 0
do for [i = 1:n_names] {
  least = Share[(i - 1) * 15 + 1] < least ? Share[(i - 1) * 15 + 1] : least
  label_width = strlen(name(i)) > label_width ? strlen(name(i)) : label_width
}
left = least > 20 ? floor((least - 12 * (100 - least) / 20.0 - 1) / 5.0) * 5.0 : 0.0
left = left < 10 ? 0 : left # a smaller cut gains nothing
start(i, p) = p == 1 ? 0.0 : sum [q = 1:p - 1] Share[(i - 1) * 15 + q]
stop(i, p) = sum [q = 1:p] Share[(i - 1) * 15 + q]

# A cause has a legend where a bar shows it: half a pixel wide or more.
visible = 0.5 * (100 - left) / (width - label_width * 7.4 - 64)
array Widest[15]
do for [p = 1:15] {
  Widest[p] = 0.0
  do for [i = 1:n_names] {
    shown = p == 1 ? 100.0 : Share[(i - 1) * 15 + p]
    Widest[p] = shown > Widest[p] ? shown : Widest[p]
  }
}

unset grid
set grid xtics linecolor rgb '#DDDDDD' linetype 1 linewidth 0.7
set border 1
set lmargin at screen (label_width * 7.4 + 24.0) / width
set rmargin at screen 1 - 40.0 / width
set tmargin at screen 1 - head - 96.0 / height
set bmargin at screen foot + 58.0 / height
set key at screen 0.5, screen 1 - head - 2.0 / height center top maxcols 5 maxrows 4 Left reverse samplen 1.6 width 0.5
set xlabel (left > 0 ? sprintf('percent of the elapsed time; the axis begins at %g %%', left) : 'percent of the elapsed time') textcolor rgb ink
set xrange [left : 100]
set yrange [-(n_names - 0.4) : 0.6]
set ytics scale 0
unset ytics
set ytics ()
do for [i = 1:n_names] { set ytics add (name(i) -(i - 1)) }
bar = 0.34
clip(v) = v < left ? left : v
cell(v) = sprintf('%.6g', v) . separator
set print $boxes
print 'part' . separator . 'x' . separator . 'y' . separator . 'from' . separator . 'to' . separator . 'below' . separator . 'above'
do for [i = 1:n_names] { do for [p = 1:15] {
  a = clip(start(i, p))
  b = clip(stop(i, p))
  print cell(p) . cell((a + b) / 2) . cell(-(i - 1)) . cell(a) . cell(b) . cell(-(i - 1) - bar) . sprintf('%.6g', -(i - 1) + bar)
} }
set print
do for [i = 1:n_names] {
  set label i sprintf('%.1f %%', Share[(i - 1) * 15 + 1]) at first left, first -(i - 1) offset 1.0, 0 left front \
    textcolor rgb 'white' font ',13'
}
plot for [p = 1:15] $boxes using (column('part') == p ? column('x') : NaN):(column('y')):(column('from')):(column('to')):(column('below')):(column('above')) \
       with boxxyerror fillcolor rgb Fill[p] fillstyle pattern Pattern[p] border rgb ink linewidth 0.7 \
       title Widest[p] > visible ? word(titles, p) : ''
