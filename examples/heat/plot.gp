# Draws the CSV file of heat or heat_fortran: gnuplot -c plot.gp heat.csv heat.svg
set terminal svg size 760,520 dynamic background rgb 'white' font 'sans-serif,13'
set output ARG2
set datafile separator ','
set multiplot layout 2,1
set key right top
set grid
set format y '10^{%T}'
set logscale y
set ylabel 'share of the fuel'
plot ARG1 using 1:($5 > 0 ? $5 : NaN) skip 1 with points pt 7 ps 0.4 lc rgb '#c44e52' title 'largest audited error of a step', \
     ARG1 using 1:($4 > 0 ? $4 : NaN) skip 1 with lines lw 1.5 lc rgb '#4c72b0' title 'largest estimate among trusted cells', \
     0.004 with lines dt 2 lc rgb '#555555' title 'tolerance'
unset logscale y
set format y '%g'
set xlabel 'step'
set ylabel 'seconds of both ranks'
set key left top
saved = 0; training = 0
plot ARG1 using 1:(saved = saved + $6) skip 1 with lines lw 1.5 lc rgb '#55a868' title 'saved', \
     ARG1 using 1:(training = training + $7) skip 1 with lines lw 1.5 lc rgb '#8172b3' title 'spent on training'
