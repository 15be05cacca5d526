"""Several machines that compute together: connect, distribute tasks, and check that
the machines are alike.
"""
