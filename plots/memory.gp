# memory.gp: bytes on a GPU of each pipeline stage at the peak, stacked by what they hold, against what the GPU has.
# data columns: stage, weights_GiB, gradients_GiB, optimizer_GiB, activations_GiB, buffers_GiB, framework_GiB,
# capacity_GiB. What stands above the line does not fit.
lib = ARG0[1:strlen(ARG0) - strlen('memory.gp')] . 'lib.gp'
if (ARGC > 0) { data = ARG1; out = ARG2; title = ARG3; caption = ARG4; separator = "\t" }
parts  = 'weights_GiB gradients_GiB optimizer_GiB activations_GiB buffers_GiB framework_GiB'
titles = '"weights" "gradients" "optimizer" "activations" "buffers" "framework"'
load lib

array Fill[6]    = ['#0072B2', '#E69F00', '#56B4E9', '#A6D9C4', '#CC79A7', '#888888']
array Pattern[6] = [3, 4, 3, 3, 1, 3]

up_to(k) = k == 0 ? 0 : sum [i=1:k] column(word(parts, i))
stats data using (up_to(6)):(column('capacity_GiB')) nooutput
stages = STATS_records
highest = STATS_max_x > STATS_max_y ? STATS_max_x : STATS_max_y
capacity = STATS_max_y
level = STATS_min_y == STATS_max_y # all GPUs have the same
every = stages > 24 ? ceil(stages / 16.0) : 1

unset grid
set grid ytics linecolor rgb '#DDDDDD' linetype 1 linewidth 0.7
set lmargin at screen 70.0 / width
set rmargin at screen 1 - 24.0 / width
set tmargin at screen 1 - head - 40.0 / height
set bmargin at screen foot + 58.0 / height
set key at screen 0.5, screen 1 - head - 2.0 / height center top maxrows 1 Left reverse samplen 1.6 width 0.5
set xlabel 'pipeline stage' textcolor rgb ink
set ylabel 'GiB on a GPU' textcolor rgb ink
set xrange [-0.7 : stages - 0.3]
set yrange [0 : highest * 1.12]
set xtics scale 0
tick(dummy) = int(column(0)) % every == 0 ? strcol('stage') : ''
if (level) {
  set arrow 1 from -0.5, capacity to stages - 0.5, capacity nohead front linecolor rgb '#D55E00' dashtype 2 linewidth 2.2
}
bar = 0.36
plot for [p = 1:6] data using 0:((up_to(p) + up_to(p - 1)) / 2):($0 - bar):($0 + bar):(up_to(p - 1)):(up_to(p)):xtic(tick(0)) \
       with boxxyerror fillcolor rgb Fill[p] fillstyle pattern Pattern[p] border rgb ink linewidth 0.7 \
       title word(titles, p), \
     for [k = 1:1 - level] data using ($0 - 0.5):(column('capacity_GiB')):(1):(0) with vectors nohead \
       linecolor rgb '#D55E00' linewidth 2.2 notitle, \
     data using 0:(up_to(6)):(stages > 24 ? '' : sprintf('%.0f', up_to(6))) with labels offset 0, 0.7 \
       textcolor rgb ink notitle, \
     '+' using (stages - 0.32):(capacity):(sprintf('capacity %.1f GiB', capacity)) every ::0::0 \
       with labels right offset 0, 0.7 textcolor rgb '#D55E00' notitle
