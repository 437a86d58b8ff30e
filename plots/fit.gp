# Measured against model, one colour a group; held-out points are filled.
#   gnuplot -e "data='fit.csv'" -e "out='fit.svg'" plots/fit.gp      (clustersim fit --plot FILE)
# data: group,measured_s,predicted_s,held_out
if (!exists("data")) data = "fit.csv"
if (!exists("out")) out = "fit.svg"
set encoding utf8
set datafile separator ","
if (out[strlen(out)-3:] eq ".png") { set terminal pngcairo size 900,900 noenhanced } else { set terminal svg size 900,900 noenhanced }
set output out
set multiplot layout 2,1
groups = system("tail -n +2 '" . data . "' | cut -d, -f1 | sort -u | tr ' ' '_' | tr '\\n' ' '")
name(i) = system("echo '" . word(groups, i) . "' | tr '_' ' '")
set logscale xy
set format xy "10^{%L}"
set format xy "%.0e"
set xlabel "measured, s"
set ylabel "model, s"
set key left top
set grid
pick(i, held, col) = (strcol(1) eq name(i) && column(4) == held ? column(col) : 1/0)
plot x with lines dashtype 2 linecolor "black" title "equal", \
  for [i = 1:words(groups)] data using (pick(i, 0, 2)):3 every ::1 with points pointtype 6 pointsize 0.4 linecolor i title name(i) . ", fitted to", \
  for [i = 1:words(groups)] data using (pick(i, 1, 2)):3 every ::1 with points pointtype 7 pointsize 0.4 linecolor i title name(i) . ", held out"
unset logscale y
set format y "%+.0f"
set ylabel "model over measured, %"
set yrange [-60:60]
unset key
plot 0 with lines dashtype 2 linecolor "black", \
  for [i = 1:words(groups)] data using (pick(i, 0, 2)):(100 * (column(3) / column(2) - 1)) every ::1 with points pointtype 6 pointsize 0.4 linecolor i, \
  for [i = 1:words(groups)] data using (pick(i, 1, 2)):(100 * (column(3) / column(2) - 1)) every ::1 with points pointtype 7 pointsize 0.4 linecolor i
unset multiplot
