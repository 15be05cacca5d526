"""Ways to compute that no experiment lists: is a device that computes so told from every candidate?"""
