"""The search for better settings: the only importer of optuna.

``search`` runs it. ``space`` is what may change, ``measures`` what is maximised, ``sampling`` how points are chosen and
given up; ``storage``, ``study`` and ``workers`` are how processes share a study, ``objective`` what a trial is worth,
``trial`` and ``data`` how a point is trained, ``board`` what is seen meanwhile, ``record``, ``outcome`` and
``publishing`` what is left, ``commands`` the command line.
"""
