def kmeans_tree(*a): raise NotImplementedError
