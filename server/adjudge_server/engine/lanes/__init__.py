"""Where calls run: one executor per lane, the same ones in every dispatcher."""
