# pareto.gp: all layouts of a search: efficiency against memory, with the edge of those that nothing else beats in both.
# data columns: tp, cp, pp, vpp, ep, micro_batch_sequences, recompute, step_time_s, mfu (a fraction), peak_bytes, pareto
# (1: on the edge), as clustersim plan --format csv writes them. The fastest is named.
lib = ARG0[1:strlen(ARG0) - strlen('pareto.gp')] . 'lib.gp'
if (ARGC > 0) { data = ARG1; out = ARG2; title = ARG3; caption = ARG4; separator = "\t" }
width = 900; height = 560
load lib

gib = 2.0 ** 30
stats data using (column('step_time_s')) nooutput
fastest = STATS_min
stats data using (column('peak_bytes') / gib):(100 * column('mfu')) nooutput
spread = (STATS_max_x - STATS_min_x) > 0 ? STATS_max_x - STATS_min_x : 1
tall = (STATS_max_y - STATS_min_y) > 0 ? STATS_max_y - STATS_min_y : 1
set tmargin at screen 1 - head - 12.0 / height
set bmargin at screen foot + 58.0 / height
set lmargin at screen 0.115
set rmargin at screen 0.97
set xlabel 'memory of the fullest GPU, GiB' textcolor rgb ink
set ylabel 'model FLOPs utilisation' textcolor rgb ink
set format y '%.1f %%'
set xrange [STATS_min_x - 0.06 * spread : STATS_max_x + 0.10 * spread]
set yrange [STATS_min_y - 0.08 * tall : STATS_max_y + 0.16 * tall]
set key right bottom Left reverse
x(dummy) = column('peak_bytes') / gib
y(dummy) = 100 * column('mfu')
layout(dummy) = sprintf('tp%d cp%d pp%d vpp%d ep%d mb%d %s', column('tp'), column('cp'), column('pp'), column('vpp'), \
                        column('ep'), column('micro_batch_sequences'), strcol('recompute'))
plot data using (x(0)):(column('pareto') > 0 ? NaN : y(0)) with points pointtype 6 pointsize 0.9 linecolor rgb Colour[6] title 'layouts', \
     data using (column('pareto') > 0 ? x(0) : NaN):(y(0)) smooth unique with linespoints pointtype 7 \
       linecolor rgb Colour[2] linewidth 1.6 title 'edge: nothing is faster and smaller', \
     data using (column('step_time_s') == fastest ? x(0) : NaN):(y(0)):(layout(0)) with labels point pointtype 3 pointsize 1.6 \
       linecolor rgb ink right offset -0.8, 0.8 textcolor rgb ink notitle
