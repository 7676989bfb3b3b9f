"""A world in true time: one cluster, several operators, everything that goes wrong, and judges that know the truth.

============== ======================================================================================================
``agenda``     true time, and chance by name
``objects``    what is stored, as plain values
``store``      the API server's etcd, and its past
``server``     answer to each request, and its effect
``wire``       every request as request, delay, effect and answer
``streams``    how an operator learns of what is stored
``lease``      who leads
``replica``    one operator
``adapter``    the only module that knows the engine
``cluster``    controllers, scheduler, kubelets
``happenings`` what can happen
``plan``       a history as data, drawn before it is played
``themes``     from what plans are drawn
``world``      plays a plan
``when``       which pods have to leave, and when, by the documents
``law``        from due to gone, by the documents: the judge, also of audit logs (``tests/chaos/judge``)
``record``     what happens, as facts for the judge
============== ======================================================================================================
"""
