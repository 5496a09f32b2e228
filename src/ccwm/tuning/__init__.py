"""The search for better settings: the only importer of optuna.

``search`` runs it. ``space`` draws points and ``points`` turns them into settings and refuses what cannot work;
``measures`` is what is maximised, ``sampling`` proposes and prunes. ``storage``, ``study`` and ``workers`` let
processes share a study; ``objective`` trains a trial's seeds with ``trial_runner``. ``runs`` are MLflow's,
``live_table`` shows the search, ``publishing`` writes its results.
"""
