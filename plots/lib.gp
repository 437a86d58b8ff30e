# lib.gp: what all pictures share. Included by each script; see README.md for the variables it takes.
#
# Colours are those of Okabe and Ito, which people with any common colour blindness tell apart; every series also has
# its own dash, point or hatching, so that a picture survives a black-and-white printer.
if (!exists("title")) title = ''
if (!exists("caption")) caption = ''
if (!exists("separator")) separator = ','
if (!exists("width")) width = 900
if (!exists("height")) height = 520

set encoding utf8
set datafile separator separator
set datafile columnheaders
set datafile missing NaN

is_png = strlen(out) > 4 && out[strlen(out)-3:*] eq '.png'
if (is_png) {
  set terminal pngcairo noenhanced size width, height background rgb 'white' font 'DejaVu Sans,10.5' linewidth 1.3
} else {
  set terminal svg noenhanced size width, height background rgb 'white' font 'DejaVu Sans,12.5' linewidth 1.3
}
set output out

ink = '#333333'
array Colour[8] = ['#0072B2', '#D55E00', '#009E73', '#CC79A7', '#E69F00', '#56B4E9', '#8C6D1F', '#000000']
array Dash[8]   = [1, 2, 4, 5, 3, 1, 2, 4]
array Point[8]  = [7, 5, 9, 13, 11, 6, 4, 8]
pick(i) = (i - 1) % 8 + 1

set border 3 linecolor rgb ink
set tics nomirror out scale 0.6 textcolor rgb ink
set grid linecolor rgb '#DDDDDD' linetype 1 linewidth 0.7
set key textcolor rgb ink samplen 2.5 spacing 1.15

# The caption is broken into lines at blanks: gnuplot does not.
broken = ''
line_now = ''
caption_lines = strlen(caption) > 0 ? 1 : 0
do for [i = 1:words(caption)] {
  if (strlen(line_now) > 0 && strlen(line_now) + strlen(word(caption, i)) + 1 > width / 7.2) {
    broken = broken . line_now . "\n"
    line_now = word(caption, i)
    caption_lines = caption_lines + 1
  } else {
    line_now = line_now . (strlen(line_now) > 0 ? ' ' : '') . word(caption, i)
  }
}
broken = broken . line_now

# Room, as a fraction of the height, for the caption below and the title above.
foot = (caption_lines > 0 ? 12.0 + 16.0 * caption_lines : 6.0) / height
head = (strlen(title) > 0 ? 34.0 : 12.0) / height
if (caption_lines > 0) {
  set label 901 broken at screen 0.012, screen foot - 14.0 / height left front textcolor rgb '#555555' \
    font is_png ? 'DejaVu Sans,9' : 'DejaVu Sans,11'
}
if (strlen(title) > 0) {
  set label 902 title at screen 0.5, screen 1 - 17.0 / height center front textcolor rgb ink \
    font is_png ? 'DejaVu Sans Bold,12' : 'DejaVu Sans,15'
}

# The different texts of a column, each once, in order of appearance, quoted for word() and words().
names = ''
n_names = 0
remember(s) = strstrt(names, '"' . s . '"') ? 0 : (names = names . '"' . s . '" ', n_names = n_names + 1)
name(i) = word(names, i)
