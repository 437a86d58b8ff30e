# gantt.gp: what each stage of the pipeline does in a step: forward, backward, weight gradients, optimizer, waiting (white).
# data columns: rank, thread, name, category, begin_s, end_s, as predict --trace FILE.csv writes them; rows of threads
# other than "compute" are left out. The number in a box is that of its micro-batch.
lib = ARG0[1:strlen(ARG0) - strlen('gantt.gp')] . 'lib.gp'
if (ARGC > 0) { data = ARG1; out = ARG2; title = ARG3; caption = ARG4; separator = "\t" }
set datafile separator (exists("separator") ? separator : ',')
set datafile columnheaders
is_compute(x) = strcol('thread') eq 'compute' ? x : NaN
stats data using (is_compute(column('rank'))) nooutput
ranks = int(STATS_max) + 1
stats data using (is_compute(column('end_s'))) nooutput
last = STATS_max
width = 1200
height = 150 + (ranks > 24 ? 16 : 34) * ranks
load lib

kinds  = '"F" "B" "I" "W" "optimizer"'
titles = '"forward" "backward" "input gradient" "weight gradient" "optimizer" "other"'
array Fill[6]    = ['#56B4E9', '#E69F00', '#E69F00', '#009E73', '#000000', '#888888']
array Pattern[6] = [3, 3, 4, 5, 3, 3]
kind_of(c) = (k = 6, sum [i=1:5] (c eq word(kinds, i) ? (k = i, 0) : 0), k)
array Seen[6]
do for [i = 1:6] {
  stats data using (is_compute(kind_of(strcol('category')) == i ? 1 : 0)) nooutput
  Seen[i] = STATS_sum
}

unset grid
set border 1
set lmargin at screen 0.075
set rmargin at screen 0.985
set tmargin at screen 1 - head - 30.0 / height
set bmargin at screen foot + 52.0 / height
set key at screen 0.53, screen 1 - head - 2.0 / height center top maxrows 1 Left reverse samplen 1.6 width 0.5
set xlabel 'seconds' textcolor rgb ink
set xrange [0 : last * 1.002]
set yrange [ranks - 0.4 : -0.6]
set ytics 1 scale 0
if (ranks > 24) { set ytics (ranks / 12 + 1) scale 0 }
set ylabel 'stage' textcolor rgb ink
bar = 0.4
shows(a, b) = b - a > last * 0.013 && ranks <= 24
number(n) = word(n, words(n))
plot for [i = 1:6] data \
       using ((column('begin_s') + column('end_s')) / 2): \
             (is_compute(kind_of(strcol('category')) == i ? column('rank') : NaN)): \
             (column('begin_s')):(column('end_s')):(column('rank') - bar):(column('rank') + bar) \
       with boxxyerror fillcolor rgb Fill[i] fillstyle pattern Pattern[i] border rgb ink linewidth 0.4 \
       title Seen[i] > 0 ? word(titles, i) : '', \
     data using ((column('begin_s') + column('end_s')) / 2): \
                (is_compute(shows(column('begin_s'), column('end_s')) && strstrt(strcol('name'), 'micro-batch') ? \
                            column('rank') : NaN)):(number(strcol('name'))) \
       with labels center textcolor rgb 'black' font is_png ? 'DejaVu Sans,8' : 'DejaVu Sans,10' notitle
