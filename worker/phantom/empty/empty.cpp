// libcuda.so.1 and libnvidia-ml.so.1 hold nothing themselves: their functions are those of
// libsweep_phantom.so.
