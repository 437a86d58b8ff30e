# busbw.gp: bus bandwidth of a collective against its size, one line a series, and measured points where there are some.
# data columns: size_bytes, busbw_GBps (GB/s = 1e9), series (may be absent), measured_busbw_GBps (may be empty), algo,
# proto; as clustersim collective --format csv writes them. A dot marks where NCCL would change algorithm or protocol.
lib = ARG0[1:strlen(ARG0) - strlen('busbw.gp')] . 'lib.gp'
if (ARGC > 0) { data = ARG1; out = ARG2; title = ARG3; caption = ARG4; separator = "\t" }
width = 900; height = 520
load lib

stats data using (remember(strcol('series')), column('busbw_GBps')) nooutput
highest = STATS_max
is_number(v) = v == v
stats data using (is_number(column('measured_busbw_GBps')) ? 1 : 0) nooutput
measured = STATS_sum
stats data using (is_number(column('measured_busbw_GBps')) ? column('measured_busbw_GBps') : 0) nooutput
if (STATS_max > highest) { highest = STATS_max }
stats data using (column('size_bytes')) nooutput
lo = STATS_min
hi = STATS_max

set tmargin at screen 1 - head - 12.0 / height
set bmargin at screen foot + 58.0 / height
set lmargin at screen 0.09
set rmargin at screen 0.97
set logscale x 2
set xlabel 'bytes' textcolor rgb ink
set xrange [lo / 1.3 : hi * 1.3]
set xtics ()
array Unit[5] = ['', 'K', 'M', 'G', 'T']
do for [e = ceil(log(lo) / log(2)):floor(log(hi) / log(2))] {
  if (int(e) % 2 == 0 || hi / lo < 5000) {
    u = int(e) / 10
    set xtics add (sprintf('%d%s', 2 ** (int(e) - 10 * u), Unit[u + 1]) 2.0 ** e)
  }
}
set ylabel 'bus bandwidth, GB/s' textcolor rgb ink
set yrange [0 : highest * 1.1]
set key left top Left reverse
mine(i) = strcol('series') eq name(i)
way = ''
whose = ''
changes(s, a) = (c = (s eq whose && a ne way), whose = s, way = a, c)
plot for [i = 1:n_names] data using (mine(i) ? column('size_bytes') : NaN):(column('busbw_GBps')) smooth unique \
       with lines linecolor rgb Colour[pick(i)] dashtype Dash[pick(i)] linewidth 2 \
       title (name(i) eq '(none)' ? 'predicted' : name(i)), \
     for [i = 1:n_names] data \
       using (mine(i) && changes(strcol('series'), strcol('algo') . strcol('proto')) ? column('size_bytes') : NaN): \
             (column('busbw_GBps')) \
       with points linecolor rgb Colour[pick(i)] pointtype Point[pick(i)] \
       title i == 1 ? 'algorithm or protocol changes' : '', \
     measured > 0 ? data : '/dev/null' using (column('size_bytes')):(column('measured_busbw_GBps')) \
       with points linecolor rgb ink pointtype 2 title measured > 0 ? 'measured' : ''
