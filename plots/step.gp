# step.gp: where the time of a step goes, one bar a row of the table (a layout, a size, a variant), stacked by cause.
# data columns: label, compute_s, tp_comm_s, cp_comm_s, ep_comm_s, pp_comm_s, dp_comm_s, bubble_s, optimizer_s, host_s,
# data_s, other_s (seconds a step). Communication is hatched, waiting is white.
lib = ARG0[1:strlen(ARG0) - strlen('step.gp')] . 'lib.gp'
if (ARGC > 0) { data = ARG1; out = ARG2; title = ARG3; caption = ARG4; separator = "\t" }
parts  = 'compute_s tp_comm_s cp_comm_s ep_comm_s pp_comm_s dp_comm_s bubble_s optimizer_s host_s data_s other_s'
titles = '"compute" "tensor parallel comm." "context parallel comm." "expert parallel comm." "pipeline comm." ' . \
         '"data parallel comm." "pipeline bubble" "optimizer" "host" "data" "other"'

# As high as the number of bars needs.
set datafile separator (exists("separator") ? separator : ',')
stats data every ::1 using 0 nooutput
rows = STATS_records
width = 1000
height = 190 + (rows > 40 ? 22 : 58) * rows
load lib

array Fill[11]    = ['#0072B2', '#D55E00', '#CC79A7', '#8C6D1F', '#E69F00', '#009E73', '#FFFFFF', '#56B4E9', '#000000', '#888888', '#CCCCCC']
array Pattern[11] = [3, 4, 1, 7, 5, 6, 0, 3, 2, 3, 3]

up_to(k) = k == 0 ? 0 : sum [i=1:k] column(word(parts, i))
stats data using (remember(strcol('label')), up_to(11)) nooutput
longest = STATS_max
array Total[11]
do for [p = 1:11] {
  stats data using (column(word(parts, p))) nooutput
  Total[p] = STATS_sum
}
label_width = 0
do for [i = 1:n_names] { label_width = strlen(name(i)) > label_width ? strlen(name(i)) : label_width }

unset grid
set grid xtics linecolor rgb '#DDDDDD' linetype 1 linewidth 0.7
set border 1
set lmargin at screen (label_width * 7.4 + 24.0) / width
set rmargin at screen 1 - 40.0 / width
set tmargin at screen 1 - head - 80.0 / height
set bmargin at screen foot + 58.0 / height
set key at screen 0.5, screen 1 - head - 2.0 / height center top maxcols 5 maxrows 3 Left reverse samplen 1.6 width 0.5
set xlabel 'seconds a step' textcolor rgb ink
set xrange [0 : longest * 1.08]
set yrange [-(rows - 0.4) : 0.6]
set ytics scale 0
bar = 0.34
plot for [p = 1:11] data using ((up_to(p) + up_to(p - 1)) / 2):(-$0):(up_to(p - 1)):(up_to(p)):(-$0 - bar):(-$0 + bar):ytic(strcol('label')) \
       with boxxyerror fillcolor rgb Fill[p] fillstyle pattern Pattern[p] border rgb ink linewidth 0.7 \
       title Total[p] > 0 ? word(titles, p) : '', \
     data using (up_to(11)):(-$0):(sprintf('%.3g s', up_to(11))) with labels left offset 0.7, 0 textcolor rgb ink notitle
