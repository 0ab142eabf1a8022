"""Joint noise: one random radius for several questions, then a uniform point in every ball.

Every block of cells has balls of integer vectors, Ball(0) = {0}, Ball(1), Ball(2), ..., such that
any change of one person's answer lies in Ball(1), and Ball(a) + Ball(b) lies in Ball(a + b). With
r(z) the smallest r such that z is in Ball(r), the noise z = (z_1, z_2, ...) of all blocks has the
distribution

    P(z) ~ exp(-epsilon max_q r_q(z_q)).

Whoever changes all answers at once changes the maximum by at most 1: the release is
epsilon-private, whatever the answers are. It is drawn exactly, because

    exp(-epsilon r) = (1 - exp(-epsilon)) * (sum of exp(-epsilon rho) over all rho >= r):

first rho with P(rho) ~ exp(-epsilon rho) prod_q |Ball_q(rho)|, then every z_q uniformly in
Ball_q(rho). This is the K-norm mechanism of Hardt and Talwar ("On the geometry of differential
privacy", STOC 2010) for a product of convex bodies, on whole numbers.
"""
