<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="adjoint gradcheck max_pool" tests="9" failures="0" skipped="0">
  <testcase classname="gradcheck.max_pool" name="%1 EXPLICIT k2x2 s2x2 p1+1x0+1 wrt input"></testcase>
  <testcase classname="gradcheck.max_pool" name="%3 EXPLICIT k2x2 s2x2 p1+1x0+1 wrt input"></testcase>
  <testcase classname="gradcheck.max_pool" name="%5 EXPLICIT k2x2 s2x2 p1+1x0+1 wrt input"></testcase>
  <testcase classname="gradcheck.max_pool" name="%7 EXPLICIT k2x2 s2x2 p1+1x0+1 wrt input"></testcase>
  <testcase classname="gradcheck.max_pool" name="%9 EXPLICIT k2x2 s1x1 p1+1x0+1 wrt input"></testcase>
  <testcase classname="gradcheck.max_pool" name="%11 EXPLICIT k2x2 s2x2 p1+1x0+1 wrt input"></testcase>
  <testcase classname="gradcheck.max_pool" name="%13 EXPLICIT k2x2 s2x2 p1+1x0+1 wrt input"></testcase>
  <testcase classname="gradcheck.max_pool" name="%15 EXPLICIT k2x2 s2x2 p1+1x0+1 wrt input"></testcase>
  <testcase classname="gradcheck.max_pool" name="%17 EXPLICIT k2x2 s1x1 p1+1x0+1 wrt input"></testcase>
</testsuite>
